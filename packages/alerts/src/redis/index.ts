// Active alerts in Redis; infra/redis/README.md lists the keys.
import { openRedis, type RedisAdapterOptions, runScript, toFamily } from '@playline/stores/redis';
import {
  type Acknowledgement,
  type ActiveAlert,
  type AlertChange,
  type AlertStore,
  keyOfAlert,
  RETRY_MS,
  toStored,
} from '../active-alerts.ts';

/** KEYS: turn, active alerts, acknowledgements, changes, time of the step. ARGV: owner, step as JSON, now. */
const WRITE_STEP = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
local step = cjson.decode(ARGV[2])
for _, alert in ipairs(step.changed) do redis.call('HSET', KEYS[2], alert.key, alert.text) end
for _, key in ipairs(step.removed) do
  redis.call('HDEL', KEYS[2], key)
  redis.call('HDEL', KEYS[3], key)
end
for _, change in ipairs(step.changes) do redis.call('ZADD', KEYS[4], ARGV[3], change) end
redis.call('SET', KEYS[5], ARGV[3])
return 1`;

/** KEYS: changes. ARGV: now, time of the next attempt. Returns a due change. */
const CLAIM = `
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, 1)
if not due[1] then return nil end
redis.call('ZADD', KEYS[1], ARGV[2], due[1])
return due[1]`;

/** KEYS: changes. ARGV: change, remaining change or '', time of the next attempt. */
const SETTLE = `
redis.call('ZREM', KEYS[1], ARGV[1])
if ARGV[2] ~= '' then redis.call('ZADD', KEYS[1], ARGV[3], ARGV[2]) end
return 1`;

const LIMITS = { connectMaxMs: 1000, silenceMaxMs: 2000, enableAutoPipelining: true };

/** Commands fail while Redis is down. If Redis loses the alerts, those that still apply fire again. */
export function openRedisAlerts(options: RedisAdapterOptions): AlertStore & { close(): Promise<void> } {
  const { redis, close } = openRedis(options, LIMITS);
  const family = toFamily(options, 'alerts');
  const turn = `${family}:turn`;
  const active = `${family}:active`;
  const acknowledged = `${family}:acknowledged`;
  const changes = `${family}:changes`;
  const evaluatedAt = `${family}:evaluated-at`;
  return {
    takeTurn: async (owner, lifetimeMs) => (await redis.set(turn, owner, 'PX', lifetimeMs, 'NX')) !== null,
    read: async () => {
      const [alerts, acknowledgements] = await Promise.all([redis.hgetall(active), redis.hgetall(acknowledged)]);
      return Object.entries(alerts).map(([key, text]) => {
        const { [key]: found } = acknowledgements;
        return toStored(
          JSON.parse(text) as ActiveAlert,
          found === undefined ? undefined : (JSON.parse(found) as Acknowledgement),
        );
      });
    },
    evaluatedAt: async () => {
      const text = await redis.get(evaluatedAt);
      return text === null ? null : Number(text);
    },
    write: async (owner, step, nowMs) => {
      const text = JSON.stringify({
        changed: step.changed.map((alert) => ({ key: keyOfAlert(alert), text: JSON.stringify(alert) })),
        removed: step.removed,
        changes: step.changes.map((change) => JSON.stringify(change)),
      });
      const keys = [turn, active, acknowledged, changes, evaluatedAt];
      return (await runScript(redis, { script: WRITE_STEP, keys, args: [owner, text, nowMs] })) === 1;
    },
    acknowledge: async (alert, acknowledgement) =>
      void (await redis.hset(acknowledged, keyOfAlert(alert), JSON.stringify(acknowledgement))),
    claim: async (nowMs) => {
      const call = { script: CLAIM, keys: [changes], args: [nowMs, nowMs + RETRY_MS] };
      const found = (await runScript(redis, call)) as string | null;
      return found === null ? null : (JSON.parse(found) as AlertChange);
    },
    settle: async (change, remaining, nowMs) => {
      const next = remaining === null ? '' : JSON.stringify(remaining);
      const args = [JSON.stringify(change), next, nowMs + RETRY_MS];
      await runScript(redis, { script: SETTLE, keys: [changes], args });
    },
    close,
  };
}
