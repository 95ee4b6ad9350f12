import type { Death, Silence } from './keeper.ts';
import { logFileOf, type StackPaths } from './paths.ts';
import { type DemoChain, publishableKeyHeaderOf, type StackFile } from './stack-file.ts';

/** Prints progress with the seconds since the first line. */
export function createProgress(write: (line: string) => void): (line: string) => void {
  const start = performance.now();
  return (line) => write(`${((performance.now() - start) / 1000).toFixed(1).padStart(6)} s  ${line}`);
}

export function deathReport(death: Death): string {
  const lines = death.lastLines === '' ? '    (it wrote nothing)' : death.lastLines.replace(/^/gm, '    ');
  return `${death.name} ended (${death.cause}); it is started again in ${death.restartInMs} ms. Its last lines:\n${lines}`;
}

const restartedBy = (pid: number) => `\`kill -9 ${pid}\` has it started anew`;

/** What to do about a process that has not served for a minute. */
export function silenceRemedy(name: string, pid: number): string {
  return `${name} has not served for a minute: what it waits for may come back; ${restartedBy(pid)}`;
}

/**
 * Reports a process that runs without serving. The stack leaves it alone, because it may be waiting or be paused on
 * purpose.
 */
export function silenceReport({ name, pid, reason }: Silence): string {
  return `${name} (process ${pid}) is alive and has not served for a minute: ${reason}. It is left alone, for what it waits for may come back; ${restartedBy(pid)}.`;
}

/** What a start prints about a Redis that has lost its data. */
export const REDIS_IS_EMPTY =
  'Redis has lost what it held: events are taken and stored, identities, consents and erasures wait until you run `npm run rebuild`.';

function table(rows: readonly (readonly [string, string])[]): string {
  const width = rows
    .map(([name]) => name.length)
    .reduce((most, each) => Math.max(most, each), Number.NEGATIVE_INFINITY);
  return rows.map(([name, value]) => `  ${name.padEnd(width)}  ${value}`).join('\n');
}

const chainRows = ({ rpc, id, contracts, signer }: DemoChain): [string, string][] => [
  ['chain', `${rpc}  id ${id}, minter ${signer}`],
  ['demo contracts', `ERC-721 ${contracts.erc721}  ERC-1155 ${contracts.erc1155}  ERC-20 ${contracts.erc20}`],
];

/** The table at the end of a start: addresses, keys, three things to try. */
export function stackReport(places: StackPaths, file: StackFile): string {
  const { clickhouse, keys } = file;
  const key = keys?.development.publishable ?? '';
  const message = `{"messages":[{"type":"track","messageId":"'$(cat /proc/sys/kernel/random/uuid 2>/dev/null || uuidgen)'","eventTimestamp":"'$(date -u +%Y-%m-%dT%H:%M:%SZ)'","anonymousId":"me","eventName":"tried_it"}]}`;
  const rows: (readonly [string, string])[] = [
    ['gateway', file.gateway ?? 'not running'],
    ...(file.chainApi === undefined ? [] : [['chain API', file.chainApi] as const]),
    ...(file.portal === undefined ? [] : [['portal', file.portal] as const]),
    ['ClickHouse', `${clickhouse.url}  database ${clickhouse.database}, user ${clickhouse.user}`],
    ['Redis', file.redis.replace(/:[^:@/]+@/, ':…@')],
    ['Kafka', file.kafka.join(', ')],
    ['schema registry', file.registry],
    ...(file.chain === undefined ? [] : chainRows(file.chain)),
    ...Object.entries(keys ?? {}).flatMap(([environment, pair]): (readonly [string, string])[] => [
      [`${environment} publishable`, pair.publishable],
      [`${environment} secret`, pair.secret],
    ]),
    ['passwords', `${places.state}/stack.json (for your eyes only)`],
  ];
  return `
${table(rows)}

  Post an event:
    curl -sS ${file.gateway}/v1/audience/messages -H 'content-type: application/json' -H '${publishableKeyHeaderOf(file)}: ${key}' -d '${message}'
  Ask for it:
    curl -sS -u "${clickhouse.user}:$(node -p 'require("${places.state}/stack.json").clickhouse.password')" '${clickhouse.url}/?database=${clickhouse.database}' -d 'SELECT event_name, event_time FROM events_exact ORDER BY event_time DESC LIMIT 10 FORMAT PrettyCompact'
  Read the logs:
    npm run logs            (files: ${logFileOf(places, '*')})
`;
}
