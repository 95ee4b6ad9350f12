import type { RecordStore, SignableKeyRecord } from '@playline/access-keys';
import { resealSignableKey, SealRefused, type Signer } from '@playline/access-keys/signer';
import { pause } from '@playline/errors';
import type { Closable, Logger } from '@playline/runtime';

export interface ResealParts {
  /** @throws while the registry or a store does not answer */
  readonly openStore: () => Promise<RecordStore<SignableKeyRecord>>;
  readonly signer: Pick<Signer, 'reseal'>;
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

async function resealAll({ openStore, signer, logger }: ResealParts, signal: AbortSignal): Promise<void> {
  const store = await openStore();
  const refused = new Set<string>();
  let resealed = 0;
  // A key that was changed meanwhile, or made for an older public key, is sealed in the next pass.
  for (let isDone = false; !isDone; ) {
    isDone = true;
    for (const record of await store.readAll()) {
      if (signal.aborted) return;
      if (refused.has(record.address)) continue;
      try {
        if ((await signer.reseal(record)) === null) continue;
        isDone = false;
        if ((await resealSignableKey({ store, signer }, record)) !== null) resealed++;
      } catch (error) {
        if (!(error instanceof SealRefused)) throw error;
        refused.add(record.address);
        logger.error({ error, address: record.address }, 'signable key cannot be opened, so it is not resealed');
      }
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
