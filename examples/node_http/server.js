'use strict'

// A server on node:http alone that gives each user a bucket and shows its state in every answer.

const http = require('node:http')
const { rateLimit } = require('mirab/express')

const limiter = rateLimit({
  limits: process.env.MIRAB_LIMITS || '1/second burst 5',
  store: process.env.MIRAB_STORE || 'shm:examples',
  onStoreFailure: process.env.MIRAB_ON_STORE_FAILURE || 'local',
  keyGenerator: userOf,
  handler: refuse
})

/** Who is limited. In a real app: what a login or a proxy that you trust has put there. */
function userOf (request) {
  return request.headers['x-user-id'] || 'default-user'
}

function answer (response, status, body) {
  response.writeHead(status, { 'Content-Type': 'application/json; charset=utf-8' })
  response.end(JSON.stringify(body))
}

function welcome (request, response) {
  const user = userOf(request)
  const { limit, used, remaining } = request.rateLimit
  const bucket = { allowed: true, limit, used, remaining, retry_after: null }
  answer(response, 200, { user, message: `Xush kelibsiz, ${user}!`, bucket })
}

function refuse (request, response) {
  const { limit, used, remaining } = request.rateLimit
  const seconds = response.getHeader('Retry-After')
  const message = seconds === undefined
    ? 'Bu soʻrov hech qachon qabul qilinmaydi.'
    : `Soʻrovlar juda koʻp. ${seconds} soniyadan keyin qayta urinib koʻring.`
  const bucket = { allowed: false, limit, used, remaining, retry_after: seconds === undefined ? null : Number(seconds) }
  answer(response, 429, { user: userOf(request), message, bucket })
}

function storeFailed (error, request, response) {
  console.error(`no decision: ${error.message}`)
  response.setHeader('Retry-After', '1')
  const message = 'Xizmat vaqtincha ishlamayapti. Birozdan keyin qayta urinib koʻring.'
  answer(response, 503, { user: userOf(request), message })
}

const server = http.createServer((request, response) => {
  limiter(request, response, (error) => {
    if (error) storeFailed(error, request, response)
    else welcome(request, response)
  })
})

server.listen(process.env.PORT || 3000, '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`)
})

for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => server.close())
