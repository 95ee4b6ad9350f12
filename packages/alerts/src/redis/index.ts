// Active alerts in Redis; infra/redis/README.md lists the keys.
import { openRedis, type RedisAdapterOptions, runScript, toFamily } from '@playline/stores/redis';
import {
  type Acknowledgement,
  type ActiveAlert,
  type AlertStore,
  keyOfAlert,
  type PendingDelivery,
  RETRY_MS,
  toDeliveries,
  toFailed,
  toStored,
} from '../active-alerts.ts';

/** Queues are named by channel and project. */
const APPEND = `
local function append(due, queue, delivery, now)
  redis.call('RPUSH', queue .. delivery.channel .. ':' .. delivery.project, delivery.text)
  redis.call('ZADD', due .. delivery.channel, 'NX', now, delivery.project)
end`;

/** KEYS: turn, active alerts, acknowledgements, time of the step, prefixes of due projects and queues. ARGV: owner, step as JSON, now. */
const WRITE_STEP = `${APPEND}
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
local step = cjson.decode(ARGV[2])
for _, alert in ipairs(step.changed) do redis.call('HSET', KEYS[2], alert.key, alert.text) end
for _, key in ipairs(step.removed) do
  redis.call('HDEL', KEYS[2], key)
  redis.call('HDEL', KEYS[3], key)
end
for _, delivery in ipairs(step.deliveries) do append(KEYS[5], KEYS[6], delivery, ARGV[3]) end
redis.call('SET', KEYS[4], ARGV[3])
return 1`;

/** KEYS: due projects of the channel, prefix of its queues. ARGV: now, time of the next attempt. */
const CLAIM = `
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, 1)
if not due[1] then return nil end
redis.call('ZADD', KEYS[1], ARGV[2], due[1])
return redis.call('LINDEX', KEYS[2] .. due[1], 0)`;

/** KEYS: due projects of the channel, queue, prefixes of due projects and queues. ARGV: project, delivery, failed delivery as JSON or '', now. */
const SETTLE = `${APPEND}
if redis.call('LINDEX', KEYS[2], 0) ~= ARGV[2] then return 0 end
redis.call('LPOP', KEYS[2])
if redis.call('EXISTS', KEYS[2]) == 0 then redis.call('ZREM', KEYS[1], ARGV[1])
else redis.call('ZADD', KEYS[1], ARGV[4], ARGV[1]) end
if ARGV[3] ~= '' then append(KEYS[3], KEYS[4], cjson.decode(ARGV[3]), ARGV[4]) end
return 1`;

const LIMITS = { connectMaxMs: 1000, silenceMaxMs: 2000, enableAutoPipelining: true };

/** Commands fail while Redis is down. If Redis loses the alerts, those that still apply fire again. */
export function openRedisAlerts(options: RedisAdapterOptions): AlertStore & { close(): Promise<void> } {
  const { redis, close } = openRedis(options, LIMITS);
  const family = toFamily(options, 'alerts');
  const turn = `${family}:turn`;
  const active = `${family}:active`;
  const acknowledged = `${family}:acknowledged`;
  const evaluatedAt = `${family}:evaluated-at`;
  // No key has only the prefix as its name: while a slot moves, Redis refuses scripts that construct key names from it.
  const [due, queue] = [`${family}:due:`, `${family}:queue:`];
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
        deliveries: toDeliveries(step).map(toQueued),
      });
      const keys = [turn, active, acknowledged, evaluatedAt, due, queue];
      return (await runScript(redis, { script: WRITE_STEP, keys, args: [owner, text, nowMs] })) === 1;
    },
    acknowledge: async (alert, acknowledgement) =>
      void (await redis.hset(acknowledged, keyOfAlert(alert), JSON.stringify(acknowledgement))),
    claim: async (channel, nowMs) => {
      const keys = [`${due}${channel}`, `${queue}${channel}:`];
      const found = (await runScript(redis, { script: CLAIM, keys, args: [nowMs, nowMs + RETRY_MS] })) as string | null;
      return found === null ? null : (JSON.parse(found) as PendingDelivery);
    },
    settle: async (delivery, failure, nowMs) => {
      const { channel, project, text } = toQueued(delivery);
      const failed = failure === null ? '' : JSON.stringify(toQueued(toFailed(delivery, failure)));
      const keys = [`${due}${channel}`, `${queue}${channel}:${project}`, due, queue];
      await runScript(redis, { script: SETTLE, keys, args: [project, text, failed, nowMs] });
    },
    close,
  };
}

const toQueued = (delivery: PendingDelivery) => ({
  channel: delivery.channel,
  project: delivery.change.projectId,
  text: JSON.stringify(delivery),
});
