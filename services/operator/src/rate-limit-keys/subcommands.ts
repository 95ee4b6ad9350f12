/** Implements the subcommands of `keys` for rate limit keys. */
import {
  createRateLimitKey,
  isActiveAt,
  NO_USE,
  PARTNER_CHARACTERS_MAX,
  PLAN_WINDOW_S,
  type Plan,
  type RateLimitKeyRecord,
  refreshRateLimitKey,
  revokeRateLimitKey,
} from '@playline/access-keys';
import { type JsonOption, printResult, type Terminal, UsageError } from '../command.ts';
import { instantOf, readUse, toUseText, type UsageSource } from '../keys/subcommands.ts';
import { type RecordSources, withRecords } from '../records/record-access.ts';

export interface RateLimitKeyDeps extends UsageSource {
  readonly sources: RecordSources<RateLimitKeyRecord>;
  readonly prefix: string;
  readonly terminal: Terminal;
}

interface RateLimitKeyOptions extends JsonOption {
  readonly id?: string | undefined;
  readonly partner?: string | undefined;
  readonly calls?: number | undefined;
  readonly windowS?: number | undefined;
  readonly expires?: string | undefined;
}

export async function create({ sources, prefix, terminal }: RateLimitKeyDeps, options: RateLimitKeyOptions) {
  const partner = options.partner?.trim() ?? '';
  if (partner === '' || partner.length > PARTNER_CHARACTERS_MAX)
    throw new UsageError(`--partner: expected a name of 1 to ${PARTNER_CHARACTERS_MAX} characters`);
  if (options.calls === undefined) throw new UsageError('--calls: expected the number of calls per window');
  const plan = { windowS: PLAN_WINDOW_S, expiresAt: null, ...planOf(options) } as Plan;
  const created = await withRecords(sources, (store) => createRateLimitKey({ store, prefix }, { partner, ...plan }));
  show(created, options, terminal);
}

export async function refresh({ sources, prefix, terminal }: RateLimitKeyDeps, options: RateLimitKeyOptions) {
  const wanted = { keyId: idOf(options), ...planOf(options) };
  const created = await withRecords(sources, (store) => refreshRateLimitKey({ store, prefix }, wanted));
  show(created, options, terminal);
}

export async function revoke({ sources, terminal }: RateLimitKeyDeps, options: RateLimitKeyOptions): Promise<void> {
  const keyId = idOf(options);
  const ended = await withRecords(sources, (store) => revokeRateLimitKey({ store }, keyId));
  printResult(terminal, options, toPublicRecord(ended), toLine(ended));
}

export async function list({ sources, terminal, openUsage }: RateLimitKeyDeps, options: RateLimitKeyOptions) {
  const records = await withRecords(sources, (store) => store.readAll());
  const { partner } = options;
  const wanted = records.filter((record) => partner === undefined || record.partner === partner);
  const ids = wanted.map(({ keyId }) => keyId);
  const uses = await readUse({ openUsage }, ids);
  for (const record of wanted.toSorted((a, b) => a.createdAt - b.createdAt)) {
    const use = uses.get(record.keyId) ?? NO_USE;
    printResult(terminal, options, { ...toPublicRecord(record), ...use }, `${toLine(record)}  ${toUseText(use)}`);
  }
}

function planOf({ calls, windowS, expires }: RateLimitKeyOptions): Partial<Plan> {
  return {
    ...(calls === undefined ? {} : { calls }),
    ...(windowS === undefined ? {} : { windowS }),
    ...(expires === undefined ? {} : { expiresAt: expires === 'never' ? null : instantOf('--expires', expires) }),
  };
}

function idOf({ id: keyId }: RateLimitKeyOptions): string {
  if (keyId === undefined) throw new UsageError('--id: expected a key id, as printed by list');
  return keyId;
}

function show(
  { record, key }: { record: RateLimitKeyRecord; key: string },
  options: RateLimitKeyOptions,
  terminal: Terminal,
): void {
  const { keyId, partner, calls, windowS, expiresAt } = record;
  const line = { keyId, kind: 'rate-limit', partner, calls, windowS, expiresAt, key };
  const text = `Rate limit key for ${partner}, ${calls} calls per ${windowS} s (shown only once):`;
  printResult(terminal, options, line, [text, key]);
}

function stateOf(record: RateLimitKeyRecord): 'live' | 'ended' | 'expired' {
  if (record.revokedAt !== null) return 'ended';
  return isActiveAt(record, Date.now()) ? 'live' : 'expired';
}

/** Omits the key's hash. */
function toPublicRecord(record: RateLimitKeyRecord) {
  const { hash: _, ...shown } = record;
  return { ...shown, kind: 'rate-limit', state: stateOf(record) };
}

function toLine(record: RateLimitKeyRecord): string {
  const { keyId, partner, calls, windowS, first4, last4, expiresAt, createdAt, revokedAt } = record;
  const until = expiresAt === null ? 'does not expire' : `expires ${toInstant(expiresAt)}`;
  const state = stateOf(record) === 'ended' ? `ended ${toInstant(revokedAt ?? 0)}` : stateOf(record);
  return `${keyId}  ${partner}  ${calls} calls per ${windowS} s  ${first4}…${last4}  created ${toInstant(createdAt)}  ${until}  ${state}`;
}

const toInstant = (atMs: number) => new Date(atMs).toISOString();
