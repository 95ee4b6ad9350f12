import type { RecordStore, SignableKeyRecord } from '@playline/access-keys';
import type { Closable, Logger } from '@playline/runtime';
import { pause } from '@playline/stores';

export interface ResealParts {
  /** @throws while the registry or a store does not answer */
  readonly openStore: () => Promise<RecordStore<SignableKeyRecord>>;
  /** Seals a key to the newest signer key and stores it. */
  readonly reseal: (
    store: RecordStore<SignableKeyRecord>,
    record: SignableKeyRecord,
  ) => Promise<{ kind: 'newest' | 'resealed' | 'changed' } | { kind: 'refused'; reason: string }>;
  readonly logger: Logger;
  /** Milliseconds until everything is read again after a fault of a store. */
  readonly retryMs?: number;
}

const RETRY_MS = 30_000;

/**
 * Seals every signable key to the newest of `SIGNER_KEYS`, in the background of a minter that was started with several.
 * Logs when the older ones may be removed, or which keys still need them. Closing waits for the key that is being sealed.
 */
export function openResealing(parts: ResealParts): Closable {
  const closing = new AbortController();
  const running = resealUntilDone(parts, closing.signal);
  return {
    close: async () => {
      closing.abort();
      await running;
    },
  };
}

async function resealUntilDone(parts: ResealParts, signal: AbortSignal): Promise<void> {
  const { logger, retryMs = RETRY_MS } = parts;
  while (!signal.aborted) {
    try {
      return await resealAll(parts, signal);
    } catch (error) {
      logger.warn({ error, retryMs }, 'resealing signable keys failed, retrying');
      await pause(retryMs, signal);
    }
  }
}

async function resealAll({ openStore, reseal, logger }: ResealParts, signal: AbortSignal): Promise<void> {
  const store = await openStore();
  const refused = new Set<string>();
  let resealed = 0;
  // A key that was changed meanwhile is sealed in the next pass.
  for (let isDone = false; !isDone; ) {
    isDone = true;
    for (const record of await store.readAll()) {
      if (signal.aborted) return;
      const outcome = refused.has(record.address) ? null : await reseal(store, record);
      if (outcome?.kind === 'resealed') resealed++;
      if (outcome?.kind === 'resealed' || outcome?.kind === 'changed') isDone = false;
      if (outcome?.kind !== 'refused') continue;
      refused.add(record.address);
      logger.error({ address: record.address, reason: outcome.reason }, 'signable key is not resealed');
    }
  }
  if (refused.size === 0)
    logger.info(
      { resealed },
      'all signable keys are sealed to the newest signer key: remove the older ones from SIGNER_KEYS',
    );
  else
    logger.warn(
      { resealed, refused: [...refused] },
      'keep the older keys of SIGNER_KEYS: some signable keys need them',
    );
}
