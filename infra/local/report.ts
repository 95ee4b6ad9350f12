import type { Death } from './keeper.ts';
import { logFileOf, type Places } from './places.ts';
import type { StackFile } from './stack-file.ts';

/** Prints progress with the seconds since the first line. */
export function createProgress(write: (line: string) => void): (line: string) => void {
  const start = performance.now();
  return (line) => write(`${((performance.now() - start) / 1000).toFixed(1).padStart(6)} s  ${line}`);
}

export function deathReport(death: Death): string {
  const lines = death.lastLines === '' ? '    (it wrote nothing)' : death.lastLines.replace(/^/gm, '    ');
  return `${death.name} ended (${death.how}); it is started again in ${death.restartInMs} ms. Its last lines:\n${lines}`;
}

function table(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, value]) => `  ${name.padEnd(width)}  ${value}`).join('\n');
}

/** The one table that a start ends with: addresses, keys, three things to try. */
export function stackReport(places: Places, file: StackFile): string {
  const { clickhouse, keys } = file;
  const key = keys?.development.publishable ?? '';
  const message = `{"messages":[{"type":"track","messageId":"'$(cat /proc/sys/kernel/random/uuid 2>/dev/null || uuidgen)'","eventTimestamp":"'$(date -u +%Y-%m-%dT%H:%M:%SZ)'","anonymousId":"me","eventName":"tried_it"}]}`;
  const rows: (readonly [string, string])[] = [
    ['gateway', file.gateway ?? 'not running'],
    ...(file.chainApi === undefined ? [] : [['chain API', file.chainApi] as const]),
    ['ClickHouse', `${clickhouse.url}  database ${clickhouse.database}, user ${clickhouse.user}`],
    ['Redis', file.redis.replace(/:[^:@/]+@/, ':…@')],
    ['Kafka', file.kafka.join(', ')],
    ['schema registry', file.registry],
    ...Object.entries(keys ?? {}).flatMap(([environment, pair]): (readonly [string, string])[] => [
      [`${environment} publishable`, pair.publishable],
      [`${environment} secret`, pair.secret],
    ]),
    ['passwords', `${places.state}/stack.json (for your eyes only)`],
  ];
  return `
${table(rows)}

  Post an event:
    curl -sS ${file.gateway}/v1/audience/messages -H 'content-type: application/json' -H 'x-service-publishable-key: ${key}' -d '${message}'
  Ask for it:
    curl -sS -u "${clickhouse.user}:$(node -p 'require("${places.state}/stack.json").clickhouse.password')" '${clickhouse.url}/?database=${clickhouse.database}' -d 'SELECT event_name, event_time FROM events_exact ORDER BY event_time DESC LIMIT 10 FORMAT PrettyCompact'
  Read the logs:
    npm run logs            (files: ${logFileOf(places, '*')})
`;
}
