import { setTimeout as delay } from 'node:timers/promises';
import type { ActivityRow, TokenRow } from '@playline/chain';
import type { ActivityRecord, TokenRecord } from '@playline/contracts';
import type { Random } from '@playline/testkit/random';
import { UnreachableError } from '../../../services/operator/src/command.ts';
import type { Imported, Importer } from '../../../services/operator/src/import/importer.ts';
import { type Line, readLines } from '../../../services/operator/src/import/lines.ts';
import { createDelivery, type HttpResponse, openHttpClient } from '../delivery.ts';
import { describeDifferences } from '../report.ts';
import type { Contract } from './generator.ts';
import type { ChainDifferences, Ledger } from './replica.ts';
import type { TrafficLine } from './traffic.ts';

function toLines(texts: readonly string[]): { bytes: number; read: () => AsyncGenerator<Line> } {
  const file = Buffer.from(texts.map((text) => `${text}\n`).join(''));
  const chunks = async function* () {
    yield file;
  };
  return { bytes: file.length, read: () => readLines(chunks()) };
}

export const createSent = () => ({
  portions: 0,
  activities: 0,
  laterVersions: 0,
  replaced: 0,
  refused: 0,
  bytes: 0,
  retries: 0,
});

interface PublishOptions {
  readonly importer: Pick<Importer<ActivityRecord, ActivityRow>, 'import'>;
  readonly ledger: Ledger;
  readonly differences: ChainDifferences;
  readonly sent: ReturnType<typeof createSent>;
  readonly retryMaxMs: number;
  readonly onProgress: (line: string) => void;
}

const RETRY_MS = 1_000;
/** Empty, because no other run uses these ids, and a later version always differs from the last version. */
const NO_TAIL: ReadonlyMap<string, never[]> = new Map();

// Returns a function that imports lines and records the results. It returns false if an import's result is unknown.
export function createPublish(options: PublishOptions): (lines: readonly TrafficLine[]) => Promise<boolean> {
  const { ledger, sent } = options;
  return async (lines) => {
    const last = new Map(
      lines.flatMap((line) => (line.activity === null ? [] : [[line.sequence, line.activity] as const])),
    );
    const versions = [...last].map(([sequence, activity]) => ({
      sequence,
      isNew: ledger.find(sequence) === null,
      version: ledger.publish(sequence, activity),
    }));
    const imported = await importWithRetries(lines, {
      ...options,
      onRetry: () => {
        for (const { sequence } of versions) ledger.allowRepeat(sequence);
      },
    });
    if (imported === null) return false;
    const now = performance.now();
    for (const { sequence, version } of versions) ledger.acknowledge(sequence, version, now);
    const created = versions.filter(({ isNew }) => isNew).length;
    sent.portions++;
    sent.activities += created;
    sent.laterVersions += versions.length - created;
    sent.replaced += imported.result.superseded;
    sent.refused += imported.result.refused;
    sent.bytes += imported.bytes;
    checkImport({ lines, versions: versions.length, ...imported }, options.differences);
    return true;
  };
}

interface Outcome {
  readonly result: Imported;
  readonly refusals: ReadonlyMap<number, readonly string[]>;
  readonly bytes: number;
}

async function importWithRetries(
  lines: readonly TrafficLine[],
  { importer, ledger, sent, retryMaxMs, onProgress, onRetry }: PublishOptions & { onRetry: () => void },
): Promise<Outcome | null> {
  const { bytes, read } = toLines(lines.map(({ text }) => text));
  const endAt = performance.now() + retryMaxMs;
  for (;;) {
    const refusals = new Map<number, readonly string[]>();
    try {
      const result = await importer.import({
        chain: null,
        tail: NO_TAIL,
        onProgress: () => {},
        lines: read,
        onRefused: (number, faults) => void refusals.set(number, faults),
        stop: new AbortController().signal,
      });
      return { result, refusals, bytes };
    } catch (error) {
      onRetry();
      const isOver = performance.now() >= endAt;
      // Lines from earlier imports are still compared.
      if (isOver && ledger.acknowledged > 0) return null;
      if (isOver) throw error;
      sent.retries++;
      onProgress(`${error instanceof Error ? error.message : error}; retrying this import`);
      await delay(RETRY_MS);
    }
  }
}

function checkImport(
  { lines, versions, result, refusals }: Outcome & { lines: readonly TrafficLine[]; versions: number },
  differences: ChainDifferences,
): void {
  for (const [index, line] of lines.entries()) {
    const reasons = refusals.get(index + 1) ?? [];
    const isExpected =
      reasons.length === line.refusal.length &&
      line.refusal.every((start, position) => reasons[position]?.startsWith(start) === true);
    if (!isExpected)
      differences.add(
        'import',
        `expected [${line.refusal.join('; ')}], got [${reasons.join('; ')}]: ${line.text.slice(0, 200)}`,
      );
  }
  const invalid = lines.filter(({ activity }) => activity === null).length;
  const counts = {
    lines: lines.length,
    published: versions,
    superseded: lines.length - invalid - versions,
    refused: invalid,
  };
  for (const [name, count] of Object.entries(counts))
    if (result[name as keyof typeof counts] !== count)
      differences.add('import', `${name}: ${result[name as keyof typeof counts]} lines instead of ${count}`);
}

export interface GeneratedToken {
  readonly chain: string;
  readonly contract_address: string;
  readonly name: string | null;
  readonly verification_status: string;
}

export function generateTokens(random: Random, chain: string, contracts: readonly Contract[]): GeneratedToken[] {
  return contracts.flatMap(({ kind, address }, rank) => {
    if (kind !== 'ERC20') return [];
    const isBridged = random.chance(0.4);
    const isKnown = rank < contracts.length / 2;
    return [
      {
        chain,
        contract_address: address,
        root_contract_address: isBridged ? `0x${random.hex(40)}` : null,
        symbol: isKnown ? `GLD${rank}` : null,
        decimals: random.pick([18, 18, 6, 0]),
        image_url: isKnown ? `https://images.example/${random.hex(8)}.png` : null,
        name: isKnown ? `Gold of league ${rank} “Ü”` : null,
        verification_status: 'unverified',
        is_canonical: !isBridged,
        root_chain_id: isBridged ? 'eip155:1' : null,
        bridge_used: isBridged ? 'lock-and-mint' : null,
      },
    ];
  });
}

export function correctTokens(tokens: readonly GeneratedToken[]): GeneratedToken[] {
  return tokens.filter((_, index) => index % 2 === 0).map((token) => ({ ...token, verification_status: 'verified' }));
}

const BROKEN_ADDRESS = `0x${'f'.repeat(40)}`;

/** Imports new or changed tokens and an invalid line, which must be refused. */
export async function publishTokens(
  importer: Pick<Importer<TokenRecord, TokenRow>, 'import'>,
  tokens: readonly GeneratedToken[],
  differences: ChainDifferences,
): Promise<void> {
  const broken = { ...tokens[0], contract_address: BROKEN_ADDRESS, decimals: 256 };
  const refusals: string[] = [];
  const result = await importer.import({
    chain: null,
    tail: NO_TAIL,
    onProgress: () => {},
    stop: new AbortController().signal,
    lines: toLines([broken, ...tokens].map((line) => JSON.stringify(line))).read,
    onRefused: (number, faults) => void refusals.push(`${number}: ${faults.join('; ')}`),
  });
  if (refusals.length !== 1 || refusals[0]?.startsWith('1: decimals') !== true)
    differences.add('import', `tokens: expected [1: decimals], got [${refusals.join('; ')}]`);
  if (result.published !== tokens.length)
    differences.add('import', `tokens: ${result.published} published instead of ${tokens.length}`);
}

interface TokenOptions {
  readonly url: string;
  readonly chain: { readonly name: string; readonly id: string | null };
  readonly differences: ChainDifferences;
  readonly retryMaxMs: number;
  readonly onCall: () => void;
}

type Get = (address: string, etag?: string) => Promise<HttpResponse>;

const POLL_MS = 500;

/** Polls each token until it equals the model, and checks that the refused token does not exist. */
export async function checkTokens(tokens: readonly GeneratedToken[], options: TokenOptions): Promise<void> {
  const { url, chain, differences, retryMaxMs, onCall } = options;
  const client = openHttpClient(url);
  const deliver = createDelivery({ client, totalMaxMs: retryMaxMs, onRetry: onCall });
  const get: Get = async (address, etag) => {
    const headers: Record<string, string> = etag === undefined ? {} : { 'if-none-match': etag };
    const path = `/v1/chains/${chain.name}/tokens/${address}`;
    onCall();
    const delivered = await deliver({ method: 'GET', path, headers, body: Buffer.alloc(0) });
    if (delivered.kind === 'complete') return delivered.response;
    throw new UnreachableError(`cannot read tokens of ${chain.name}: ${delivered.reason}`);
  };
  try {
    const endAt = performance.now() + retryMaxMs;
    for (const token of tokens) {
      const address = token.contract_address;
      for (const text of await awaitToken(token, get, { chain, endAt })) differences.add('token', `${address} ${text}`);
      for (const text of await checkEtag(address, get)) differences.add('token', `${address} ${text}`);
    }
    const { status } = await get(BROKEN_ADDRESS);
    if (status !== 404) differences.add('token', `${BROKEN_ADDRESS} was refused, but the API responds with ${status}`);
  } finally {
    client.close();
  }
}

/** @returns the differences that remain after the timeout */
async function awaitToken(
  token: GeneratedToken,
  get: Get,
  { chain, endAt }: Pick<TokenOptions, 'chain'> & { endAt: number },
): Promise<string[]> {
  for (;;) {
    const { status, text } = await get(token.contract_address);
    const wrong = status === 200 ? differencesOf(token, chain, JSON.parse(text)) : [`returns status ${status}`];
    if (wrong.length === 0 || performance.now() >= endAt) return wrong;
    await delay(POLL_MS);
  }
}

function differencesOf(token: GeneratedToken, chain: TokenOptions['chain'], body: unknown): string[] {
  const { result } = body as { result?: { updated_at?: unknown; chain?: { id?: unknown } } };
  const { id = chain.id } = result?.chain ?? {};
  const expected = { ...token, chain: { id: chain.id ?? id, name: chain.name }, updated_at: result?.updated_at };
  return describeDifferences({ result: expected }, body);
}

async function checkEtag(address: string, get: Get): Promise<string[]> {
  const { headers } = await get(address);
  const { etag } = headers;
  if (etag === undefined) return ['has no ETag'];
  const matching = await get(address, etag);
  const different = await get(address, '"another"');
  const wrong = [];
  if (matching.status !== 304 || matching.text !== '')
    wrong.push(`returns ${matching.status} instead of 304 for its ETag`);
  if (different.status !== 200 || different.headers.etag !== etag)
    wrong.push(`returns ${different.status} instead of 200 with the current ETag for a different ETag`);
  return wrong;
}
