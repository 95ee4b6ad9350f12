import { type SchemaSource, TOPICS } from '@playline/contracts';
import { openFenceSet } from '@playline/erasure';
import type { Closable, Logger } from '@playline/runtime';
import type { QueryRows } from '@playline/stores';
import type { LogReader } from '@playline/stream';
import { deadLetterTopicOf } from '@playline/stream';
import { type LiveHub, openLiveHub } from './hub.ts';
import { createViewFences } from './view-fences.ts';

interface LiveSources {
  /** Closed with the hub; it connects when somebody looks. */
  readonly log: LogReader;
  readonly schemaOf: SchemaSource;
  readonly topicPrefix: string;
  /** Consumer group of the event writer. */
  readonly writerGroup: string;
  /** Asks ClickHouse who is erased, each second, of environments that somebody looks at. */
  readonly query: QueryRows;
  readonly logger: Logger;
}

/** Opens the view of what becomes of messages, over the log and the fences of erased people. */
export function openLive({ log, query, topicPrefix, logger, ...rest }: LiveSources): LiveHub & Closable {
  const warnOf = (sentence: string) => (error: unknown) => logger.warn({ error }, sentence);
  const [messages, rejections] = [topicPrefix + TOPICS.messages.name, topicPrefix + TOPICS.rejections.name];
  const hub = openLiveHub({
    ...rest,
    log,
    topics: { messages, rejections, letters: [deadLetterTopicOf(messages), deadLetterTopicOf(rejections)] },
    openFences: (environmentId) =>
      openFenceSet({
        records: createViewFences(query, environmentId),
        onFault: createTellOnce(warnOf(NO_FENCES)),
      }),
    onFault: warnOf('the log cannot be read for live messages'),
  });
  return {
    look: hub.look.bind(hub),
    get lookers() {
      return hub.lookers;
    },
    get held() {
      return hub.held;
    },
    close: async () => {
      await hub.close();
      await log.close();
    },
  };
}

const NO_FENCES = 'the fences of erased people cannot be read: no live message is shown five seconds from then on';

/** The set asks every second: the first fault of a look is told. */
function createTellOnce(tell: (fault: unknown) => void): (fault: unknown) => void {
  let isTold = false;
  return (fault) => {
    if (!isTold) tell(fault);
    isTold = true;
  };
}
