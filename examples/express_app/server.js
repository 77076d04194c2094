'use strict'

const { createApp } = require('./app.js')

const app = createApp({
  limits: process.env.MIRAB_LIMITS || '1/second burst 5',
  store: process.env.MIRAB_STORE || 'shm:examples',
  onStoreFailure: process.env.MIRAB_ON_STORE_FAILURE || 'local'
})

const server = app.listen(process.env.PORT || 3000, '127.0.0.1', (error) => {
  if (error) throw error
  console.log(`listening on http://127.0.0.1:${server.address().port}`)
})

for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => server.close())
