'use strict'

// An Express app that gives each user a bucket and shows its state in every answer.

const express = require('express')
const { rateLimit } = require('mirab/express')

/** Who is limited. In a real app: what a login or a proxy that you trust has put there. */
function userOf (request) {
  return request.get('x-user-id') || 'default-user'
}

/** The state of the bucket, as the limiter left it on the request; seconds to wait only when it refused. */
function bucketOf (request, response) {
  const { limit, used, remaining } = request.rateLimit
  const seconds = response.getHeader('Retry-After')
  const allowed = response.statusCode !== 429
  return { allowed, limit, used, remaining, retry_after: seconds === undefined ? null : Number(seconds) }
}

function refuse (request, response) {
  response.status(429)
  const bucket = bucketOf(request, response)
  const message = bucket.retry_after === null
    ? 'Bu soʻrov hech qachon qabul qilinmaydi.'
    : `Soʻrovlar juda koʻp. ${bucket.retry_after} soniyadan keyin qayta urinib koʻring.`
  response.json({ user: userOf(request), message, bucket })
}

/** Apps that name the same limits and the same store share their buckets, whatever language they are written in. */
function createApp ({ limits, store, onStoreFailure }) {
  const app = express()

  app.use(rateLimit({ limits, store, onStoreFailure, keyGenerator: userOf, handler: refuse }))

  app.get('/', (request, response) => {
    const user = userOf(request)
    response.json({ user, message: `Xush kelibsiz, ${user}!`, bucket: bucketOf(request, response) })
  })

  app.use((error, request, response, next) => {
    if (!error.code?.startsWith('MIRAB_')) return next(error)
    console.error(`no decision: ${error.message}`)
    const message = 'Xizmat vaqtincha ishlamayapti. Birozdan keyin qayta urinib koʻring.'
    response.status(503).set('Retry-After', '1').json({ user: userOf(request), message })
  })

  return app
}

module.exports = { createApp }
