/** Loads the demo game into an environment, in the background. */
import { schemaSubjectOf } from '@playline/contracts';
import { type DemoGameParts, type DemoLoad, loadDemoGame } from '@playline/demo-game';
import { PublicError } from '@playline/errors';
import type { SchemaRegistry } from '@playline/stream';

/** The current or last load of this process into an environment. */
export interface DemoState extends Pick<DemoLoad, 'days' | 'messages'> {
  readonly kind: 'running' | 'done' | 'failed';
}

export interface DemoLoaderParts extends Pick<DemoGameParts, 'topicPrefix' | 'keyOf' | 'producer' | 'consents'> {
  readonly registry: Pick<SchemaRegistry, 'idOf'>;
  readonly onFault: (fault: unknown, message: string) => void;
}

export type DemoLoader = ReturnType<typeof createDemoLoader>;

export function createDemoLoader({ topicPrefix, keyOf, producer, consents, registry, onFault }: DemoLoaderParts) {
  const states = new Map<string, DemoState>();
  const load = async (environmentId: string) => {
    let state: DemoState = { kind: 'running', days: 0, messages: 0 };
    const set = (kind: DemoState['kind'], { days, messages }: Pick<DemoState, 'days' | 'messages'> = state) => {
      state = { kind, days, messages };
      states.set(environmentId, state);
    };
    set('running');
    const schemaIdOf = (topic: string, schema: string) => registry.idOf(schemaSubjectOf(topic), schema);
    const onProgress = (progress: DemoLoad) => set('running', progress);
    const log = { topicPrefix, keyOf, producer, consents, schemaIdOf };
    try {
      set('done', await loadDemoGame({ ...log, environmentId, endAtMs: Date.now(), onProgress }));
    } catch (fault) {
      set('failed');
      onFault(fault, 'loading demo data failed');
    }
  };
  return {
    stateOf: (environmentId: string): DemoState | null => states.get(environmentId) ?? null,
    /** @throws PublicError CONFLICT_ERROR if a load is running in this process */
    start(environmentId: string): void {
      const message = 'Demo data is already being loaded. Wait until it is done.';
      if ([...states.values()].some(({ kind }) => kind === 'running'))
        throw new PublicError('CONFLICT_ERROR', { message });
      void load(environmentId);
    },
  };
}
