// Four workers of node:cluster that rush at a key together with the other programs of test_shared_memory.py:
// rush.mjs LIMITS STORE KEY FOLDER SHARE AFTER
import cluster from 'node:cluster'
import { existsSync, writeFileSync } from 'node:fs'

import { Limiter } from 'mirab'

const WORKERS = 4

/** Lets the others run. */
function pause (ms) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

/** How many of our requests passed: `share` of them, and `after` more once one was refused. */
async function rush (limits, store, key, folder, share, after) {
  const limiter = new Limiter(limits, { store, onStoreFailure: 'raise' })
  const isLocal = store.startsWith('shm:')
  writeFileSync(`${folder}/ready-${process.pid}`, '')
  while (!existsSync(`${folder}/go`)) pause(0.2)
  let [passed, turn] = [0, 0]
  while (turn < share || (passed < turn && turn < share + after)) {
    if (isLocal ? limiter.allowSync(key) : await limiter.allow(key)) passed++
    turn++
    if (turn % 4 === 0 && turn < share) pause(0.01)
  }
  limiter.close()
  return passed
}

if (cluster.isPrimary) {
  for (let i = 0; i < WORKERS; i++) cluster.fork()
  cluster.on('exit', (worker, code, signal) => {
    if (code !== 0) process.exitCode = 1
    if (signal) console.error(`a worker was ended by ${signal}`)
  })
} else {
  const [limits, store, key, folder, share, after] = process.argv.slice(2)
  const passed = await rush(limits, store, key, folder, Number(share), Number(after))
  // A pipe to the one who counts: what is written to it may still be on its way when a process exits.
  process.stdout.write(`${process.pid} ${passed}\n`, () => process.disconnect())
}
