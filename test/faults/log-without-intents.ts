import { type BlockConsumerOptions, openBlockConsumer as openWithIntents } from '@playline/stream/kafka';
import { NO_INTENTS } from '../../packages/stream/src/test/no-intents.ts';

export * from '@playline/stream/kafka';

/** Shadows the function of the same name from `export *`. */
export function openBlockConsumer(options: BlockConsumerOptions): ReturnType<typeof openWithIntents> {
  return openWithIntents({ ...options, intents: NO_INTENTS });
}
