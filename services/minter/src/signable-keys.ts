import type { RecordCopy, RecordStore, SignableKeyRecord } from '@playline/access-keys';
import { toHexText } from '@playline/contracts';
import type { Logger, Metrics } from '@playline/runtime';
import { pause } from '@playline/stores';
import { parseTransaction } from 'viem/utils';
import type { LaneSigner, SignedTransaction, SignerLane, UnsignedTransaction } from './ports.ts';

interface KeySignerParts {
  readonly keys: Pick<RecordCopy<SignableKeyRecord>, 'records' | 'ageMs'>;
  /** Signs without exposing the private key. */
  readonly signTransaction: (
    record: SignableKeyRecord,
    transaction: UnsignedTransaction,
    options: { readonly isOpen: boolean },
  ) => Promise<SignedTransaction>;
}

/** Creates a signer that uses an address's sealed key. */
export function createKeySigner({ keys, signTransaction }: KeySignerParts, { signer }: SignerLane): LaneSigner {
  const address = toHexText(signer);
  const find = () => keys.records.find((record) => record.address === address);
  const blocked = (reason: string) => ({ kind: 'blocked', reason }) as const;
  return {
    status: (environmentId) => {
      const record = find();
      if (record === undefined && keys.ageMs === Number.POSITIVE_INFINITY)
        return blocked('The signable keys have not been read yet: Redis does not respond or does not contain them.');
      if (record === undefined) return blocked(`The signable key ${address} does not exist.`);
      if (record.environmentId !== environmentId)
        return blocked(`The signable key ${address} belongs to another environment.`);
      return record.state === 'live' ? { kind: 'live' } : blocked(`The signable key ${address} is disabled.`);
    },
    sign: async (transaction, options) => {
      const record = find();
      if (record === undefined) throw new Error(`the signable key ${address} does not exist`);
      return signTransaction(record, transaction, options);
    },
    read: readSigned,
  };
}

/** @throws Error unless the bytes are an EIP-1559 transaction */
function readSigned(bytes: Buffer): UnsignedTransaction {
  const transaction = parseTransaction(toHexText(bytes));
  const { chainId, nonce = 0, to, data = '0x', gas, maxFeePerGas, maxPriorityFeePerGas } = transaction;
  if (transaction.type !== 'eip1559' || chainId === undefined || to == null || gas === undefined)
    throw new Error('the logged bytes are not an EIP-1559 transaction');
  const fees = { maxFeePerGas: maxFeePerGas ?? 0n, maxPriorityFeePerGas: maxPriorityFeePerGas ?? 0n };
  return { chainId, nonce, to: to.toLowerCase(), data: data.toLowerCase(), gas: Number(gas), ...fees };
}

export interface ResealParts {
  readonly keys: { readonly records: readonly SignableKeyRecord[] };
  /** @throws Error if the registry or a store is unavailable */
  readonly openStore: () => Promise<RecordStore<SignableKeyRecord>>;
  readonly reseal: (
    store: RecordStore<SignableKeyRecord>,
    record: SignableKeyRecord,
  ) => Promise<{ kind: 'newest' | 'resealed' | 'changed' } | { kind: 'refused'; reason: string }>;
  /** The number of keys in SIGNER_KEYS. */
  readonly signerKeys: number;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly intervals?: {
    /** Delay after a store fault. */
    readonly retryMs: number;
    /** Interval at which `keys` is checked for changes. */
    readonly checkMs: number;
  };
}

interface Pass {
  /** The sealed keys that were checked. */
  readonly checked: ReadonlySet<string>;
  /** The sealed keys that no signer key decrypts. */
  readonly refused: ReadonlyMap<string, SignableKeyRecord>;
  /** The addresses of the resealed keys. */
  readonly resealed: readonly string[];
}

const INTERVALS = { retryMs: 30_000, checkMs: 5_000 };
const NAMED_MAX = 5;

/** Seals every signable key to the newest key in `SIGNER_KEYS`, at startup and after changes. */
export function openResealing(parts: ResealParts) {
  const closing = new AbortController();
  let last: Pass | null = null;
  const findUndecrypted = () =>
    parts.keys.records.filter(({ state, sealed }) => state === 'live' && last?.refused.has(sealed) === true);
  parts.metrics.collectedGauge('playline_minter_unopened_keys', 'Live signable keys that SIGNER_KEYS cannot decrypt', {
    collect: (gauge) => gauge.set(findUndecrypted().length),
  });
  const running = keepSealed(parts, closing.signal, (pass) => {
    report(parts, last, pass);
    last = pass;
  });
  return {
    /** Why live signable keys cannot be used. */
    reasons: (): Readonly<Record<string, string>> => {
      const addresses = findUndecrypted().map(({ address }) => address);
      if (addresses.length === 0) return {};
      const named = addresses.slice(0, NAMED_MAX).join(', ');
      return { signableKeys: `live signable keys that no key in SIGNER_KEYS decrypts (${addresses.length}): ${named}` };
    },
    close: async () => {
      closing.abort();
      await running;
    },
  };
}

async function keepSealed(parts: ResealParts, signal: AbortSignal, onPass: (pass: Pass) => void): Promise<void> {
  const { keys, logger, intervals: { retryMs, checkMs } = INTERVALS } = parts;
  while (!signal.aborted) {
    let checked: ReadonlySet<string>;
    try {
      const pass = await resealAll(parts, signal);
      if (signal.aborted) return;
      onPass(pass);
      ({ checked } = pass);
    } catch (error) {
      logger.warn({ error, retryMs }, 'resealing signable keys failed; retrying');
      await pause(retryMs, signal);
      continue;
    }
    while (!signal.aborted && keys.records.every(({ sealed }) => checked.has(sealed))) await pause(checkMs, signal);
    if (!signal.aborted && parts.signerKeys > 1)
      logger.warn(
        'signable keys changed: keep the older keys in SIGNER_KEYS until all signable keys have been rechecked',
      );
  }
}

async function resealAll({ openStore, reseal, logger }: ResealParts, signal: AbortSignal): Promise<Pass> {
  const store = await openStore();
  const checked = new Set<string>();
  const refused = new Map<string, SignableKeyRecord>();
  const resealed: string[] = [];
  // Keys that change during an iteration are sealed in the next iteration.
  for (let isDone = false; !isDone; ) {
    isDone = true;
    for (const record of await store.readAll()) {
      if (signal.aborted) return { checked, refused, resealed };
      const { address, sealed } = record;
      if (checked.has(sealed)) continue;
      const outcome = await reseal(store, record);
      if (outcome.kind === 'resealed') resealed.push(address);
      if (outcome.kind === 'resealed' || outcome.kind === 'changed') isDone = false;
      if (outcome.kind === 'changed') continue;
      checked.add(sealed);
      if (outcome.kind !== 'refused') continue;
      refused.set(sealed, record);
      logger.error({ address, reason: outcome.reason }, 'cannot decrypt signable key');
    }
  }
  return { checked, refused, resealed };
}

function report({ logger, signerKeys }: ResealParts, before: Pass | null, { resealed, refused }: Pass): void {
  if (before !== null && resealed.length > 0)
    logger.warn(
      { addresses: resealed },
      'signable keys sealed to an older signer key: a portal or command still uses its public key',
    );
  if (refused.size > 0) {
    const addresses = [...refused.values()].map(({ address }) => address);
    const message = 'signable keys not decrypted: add the missing signer key to SIGNER_KEYS, and do not remove any key';
    logger.warn({ resealed: resealed.length, refused: addresses }, message);
  } else if (signerKeys > 1)
    logger.info(
      { resealed: resealed.length },
      'signable keys sealed to the newest signer key: remove the older keys from SIGNER_KEYS',
    );
}
