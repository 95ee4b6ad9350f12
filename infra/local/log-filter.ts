// Selects lines of log files: JSON lines of services, and plain lines of stores.
import { parseArgs } from 'node:util';

export interface LogSearch {
  readonly names: readonly string[];
  /** Null if the call has no option that selects lines. */
  readonly matches: ((line: string) => boolean) | null;
}

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'];
const UNIT_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * Parses the arguments of `logs`. A line without a level and a time matches only `--grep`.
 * @throws Error for an invalid value
 */
export function parseLogSearch(args: readonly string[], nowMs: number): LogSearch {
  const options = {
    since: { type: 'string' },
    level: { type: 'string' },
    grep: { type: 'string' },
    trace: { type: 'string' },
  } as const;
  const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true });
  const { since, level, grep, trace } = values;
  const hasFilter = Object.keys(values).length > 0;
  const fromAt = since === undefined ? '' : new Date(nowMs - toDurationMs(since)).toISOString();
  const rank = level === undefined ? 0 : LEVELS.indexOf(level);
  if (rank === -1) throw new Error(`--level: expected ${LEVELS.join(', ')}`);
  const traceId = trace?.toLowerCase();
  if (traceId !== undefined && !/^[0-9a-f]{32}$/.test(traceId))
    throw new Error('--trace: expected the trace id of a response, 32 hexadecimal digits');
  const text = grep?.toLowerCase();
  const needsFields = since !== undefined || level !== undefined;
  const matches = (line: string) => {
    if (line === '' || (text !== undefined && !line.toLowerCase().includes(text))) return false;
    if (traceId !== undefined && !line.includes(traceId)) return false;
    if (!needsFields) return true;
    const fields = parseFields(line);
    return fields !== null && fields.at >= fromAt && LEVELS.indexOf(fields.level) >= rank;
  };
  return { names: positionals, matches: hasFilter ? matches : null };
}

function toDurationMs(text: string): number {
  const [, count, unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  if (count === undefined) throw new Error('--since: expected a duration such as 30s, 10m, 2h or 1d');
  return Number(count) * UNIT_MS[unit]!;
}

/** Returns the level and time (ISO 8601) of a service's line, or null for any other line. */
export function parseFields(line: string): { level: string; at: string } | null {
  try {
    const { level, time } = JSON.parse(line);
    return typeof level === 'string' && typeof time === 'string' ? { level, at: time } : null;
  } catch {
    return null;
  }
}
