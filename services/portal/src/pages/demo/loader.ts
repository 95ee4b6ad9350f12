/** Loads the demo game into an environment, in the background. */
import { schemaSubjectOf, TOPICS } from '@playline/contracts';
import { type DemoGameParts, type DemoLoad, loadDemoGame } from '@playline/demo-game';
import { PublicError } from '@playline/errors';
import type { ConsentStore } from '@playline/people';
import { type Producer, type SchemaRegistry, sendAll } from '@playline/stream';

export interface DemoLoader {
  /** The current or last load of this process into the environment, or null. */
  stateOf(environmentId: string): DemoState | null;
  /** @throws PublicError CONFLICT_ERROR if a load is running in this process */
  start(environmentId: string): void;
}

export interface DemoState {
  readonly kind: 'running' | 'done' | 'failed';
  readonly load: DemoLoad | null;
}

export interface DemoLoaderParts extends Pick<DemoGameParts, 'topicPrefix' | 'keyOf'> {
  readonly producer: Pick<Producer, 'send' | 'sendForOffset'>;
  readonly registry: Pick<SchemaRegistry, 'idOf'>;
  readonly consents: Pick<ConsentStore, 'apply'>;
  readonly onFault: (fault: unknown, message: string) => void;
}

/** Topics for which the producer must be opened. */
export const DEMO_TOPICS = [TOPICS.messages, TOPICS.identityLinks, TOPICS.rejections, TOPICS.consents].map(
  ({ name }) => name,
);

export function createDemoLoader(parts: DemoLoaderParts): DemoLoader {
  const { topicPrefix, keyOf, producer, registry, consents, onFault } = parts;
  const states = new Map<string, DemoState>();
  const load = (environmentId: string) =>
    loadDemoGame({
      environmentId,
      endAtMs: Date.now(),
      topicPrefix,
      keyOf,
      schemaIdOf: (topic, schema) => registry.idOf(schemaSubjectOf(topic), schema),
      publish: (records) => sendAll(producer, records),
      putConsent: async (record, consent) => {
        const { loggedAtMs, ...stored } = await producer.sendForOffset(record);
        await consents.apply({ ...consent, position: { ...stored, loggedAtMs: loggedAtMs ?? consent.receivedAt } });
      },
      onProgress: (progress) => states.set(environmentId, { kind: 'running', load: progress }),
    });
  return {
    stateOf: (environmentId) => states.get(environmentId) ?? null,
    start(environmentId) {
      if ([...states.values()].some(({ kind }) => kind === 'running'))
        throw new PublicError('CONFLICT_ERROR', {
          message: 'Demo data is already being loaded. Wait until it is done.',
        });
      states.set(environmentId, { kind: 'running', load: null });
      load(environmentId).then(
        (loaded) => states.set(environmentId, { kind: 'done', load: loaded }),
        (fault: unknown) => {
          states.set(environmentId, { kind: 'failed', load: states.get(environmentId)?.load ?? null });
          onFault(fault, 'loading demo data failed');
        },
      );
    },
  };
}
