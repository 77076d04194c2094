// Plays a scenario of every operation: operations.mjs SCENARIO STORE
import { readFileSync } from 'node:fs'

import { Limiter, ManualClock, MirabError } from 'mirab'

const micros = (ms) => Math.round(ms * 1000)

function told (decision) {
  const retry = decision.retryAfterMs === undefined ? '-' : micros(decision.retryAfterMs)
  const verdict = decision.allowed ? 'admitted' : decision.never ? 'never' : 'refused'
  return `${verdict} by ${decision.limitName}: ${decision.used} of ${decision.limit} used, ${decision.remaining} left, ` +
    `retry ${retry}, reset ${micros(decision.resetAfterMs)}, delay ${micros(decision.delayMs)}`
}

async function play ([operation, ...rest], limiter, clock, taken) {
  const [first, second] = rest
  switch (operation) {
    case 'at': clock.setUs(Number(first)); return 'done'
    case 'acquire': taken[first] = await limiter.acquire(second, Number(rest[2])); return told(taken[first])
    case 'allow': return await limiter.allow(first, Number(second)) ? 'yes' : 'no'
    case 'peek': return told(await limiter.peek(first, Number(second)))
    case 'many': {
      const items = []
      for (let i = 0; i < rest.length; i += 2) items.push([rest[i], Number(rest[i + 1])])
      return (await limiter.acquireMany(items)).map(told).join(' | ')
    }
    case 'wait': {
      const decision = await limiter.wait(first, Number(second), { timeoutMs: Number(rest[2]) / 1000 })
      return `${told(decision)}, at ${clock.nowUs}`
    }
    case 'refund': return await limiter.refund(taken[first])
    case 'commit': await limiter.commit(taken[first], Number(second)); return 'done'
    case 'release': return await limiter.release(taken[first])
    case 'block': await limiter.block(first, Number(second) / 1000); return 'done'
    case 'unblock': await limiter.unblock(first); return 'done'
    case 'reset': await limiter.reset(first); return 'done'
    case 'stats': {
      const { allowed, refused, never, blocked, errors, refunded } = limiter.stats()
      return [allowed, refused, never, blocked, errors, refunded].join(' ')
    }
    case 'close': limiter.close(); return 'done'
    default: throw new Error(`unknown step ${operation}`)
  }
}

const [scenario, store] = process.argv.slice(2)
let limiter, clock, taken
for (const line of readFileSync(scenario, 'utf8').split('\n').filter((it) => it && !it.startsWith('#'))) {
  if (line.startsWith('limiter ')) {
    clock = new ManualClock()
    limiter = new Limiter(line.slice('limiter '.length), { store, clock })
    taken = {}
    console.log(line)
    continue
  }
  try {
    console.log(`${line} -> ${await play(line.split(' '), limiter, clock, taken)}`)
  } catch (error) {
    if (!(error instanceof MirabError)) throw error
    console.log(`${line} -> error ${error.kind}`)
  }
}
