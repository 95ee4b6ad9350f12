// Messages that commands print about a stack.
import type { ProcessExit, Silence } from './keeper.ts';
import { logFileOf, type StackPaths } from './paths.ts';
import { type DemoChain, publishableKeyHeaderOf, type StackFile } from './stack-file.ts';

/** Prints progress lines with the elapsed seconds. */
export function createProgress(write: (line: string) => void): (line: string) => void {
  const start = performance.now();
  return (line) => write(`${((performance.now() - start) / 1000).toFixed(1).padStart(6)} s  ${line}`);
}

export function exitReport(exit: ProcessExit): string {
  const lines = exit.lastLines === '' ? '    (its log is empty)' : exit.lastLines.replace(/^/gm, '    ');
  return `${exit.name} exited (${exit.cause}); restarting in ${exit.restartInMs} ms. Last log lines:\n${lines}`;
}

/** Returns advice for a process that has not been ready for a minute. */
export const silenceRemedy = (name: string, pid: number): string =>
  `${name} has not been ready for a minute. It may be waiting; \`kill -9 ${pid}\` restarts it`;

export const silenceReport = ({ name, pid, reason }: Silence): string =>
  `${name} (process ${pid}) is running but has not been ready for a minute: ${reason}. It may be waiting; \`kill -9 ${pid}\` restarts it.`;

export const REDIS_IS_EMPTY =
  'Redis has lost its data: events are accepted and stored, but identities, consents and erasures wait. Run `npm run rebuild`.';

function table(rows: readonly (readonly [string, string])[]): string {
  const width = rows.reduce((most, [name]) => Math.max(most, name.length), 0);
  return rows.map(([name, value]) => `  ${name.padEnd(width)}  ${value}`).join('\n');
}

const chainRows = ({ rpc, id, contracts, signer }: DemoChain): [string, string][] => [
  ['chain', `${rpc}  id ${id}, minter ${signer}`],
  ['demo contracts', `ERC-721 ${contracts.erc721}  ERC-1155 ${contracts.erc1155}  ERC-20 ${contracts.erc20}`],
];

/** Returns the summary of a start: addresses, keys, and example commands. */
export function stackReport(paths: StackPaths, file: StackFile): string {
  const { clickhouse, gateway, keys } = file;
  const key = keys?.development.publishable ?? '';
  const message = `{"messages":[{"type":"track","messageId":"'$(cat /proc/sys/kernel/random/uuid 2>/dev/null || uuidgen)'","eventTimestamp":"'$(date -u +%Y-%m-%dT%H:%M:%SZ)'","anonymousId":"me","eventName":"tried_it"}]}`;
  const rows: (readonly [string, string])[] = [
    ['gateway', gateway ?? 'not running'],
    ...(file.chainApi === undefined ? [] : [['chain API', file.chainApi] as const]),
    ...(file.portal === undefined ? [] : [['portal', file.portal] as const]),
    ...Object.entries(file.others ?? {}),
    ['ClickHouse', `${clickhouse.url}  database ${clickhouse.database}, user ${clickhouse.user}`],
    ['Redis', file.redis.replace(/:[^:@/]+@/, ':…@')],
    ['Kafka', file.kafka.join(', ')],
    ['schema registry', file.registry],
    ...(file.chain === undefined ? [] : chainRows(file.chain)),
    ...Object.entries(keys ?? {}).flatMap(([environment, pair]): (readonly [string, string])[] => [
      [`${environment} publishable`, pair.publishable],
      [`${environment} secret`, pair.secret],
    ]),
    ['passwords', `${paths.state}/stack.json (keep this file private)`],
  ];
  const post =
    gateway === undefined
      ? ''
      : `  Post an event:
    curl -sS ${gateway}/v1/audience/messages -H 'content-type: application/json' -H '${publishableKeyHeaderOf(file)}: ${key}' -d '${message}'
`;
  return `
${table(rows)}

${post}  Query the events:
    curl -sS -u "${clickhouse.user}:$(node -p 'require("${paths.state}/stack.json").clickhouse.password')" '${clickhouse.url}/?database=${clickhouse.database}' -d 'SELECT event_name, event_time FROM events_exact ORDER BY event_time DESC LIMIT 10 FORMAT PrettyCompact'
  Read the logs:
    npm run logs            (files: ${logFileOf(paths, '*')})
`;
}
