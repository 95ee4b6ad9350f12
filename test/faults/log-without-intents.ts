import { type BlockConsumerOptions, openBlockConsumer as openWithIntents } from '@playline/stream/kafka';

export * from '@playline/stream/kafka';

/** Takes the place of the one of the same name that `export *` would give. */
export function openBlockConsumer(options: BlockConsumerOptions): ReturnType<typeof openWithIntents> {
  return openWithIntents({ ...options, withoutIntents: true });
}
