import type { Logger } from '@playline/runtime';
import { type logCreator, logLevel } from 'kafkajs';

/** Lines of kafkajs in our log; what it calls information is of no use to an operator. */
export function createKafkaLogger(logger: Logger | undefined): logCreator {
  return () =>
    ({ level, log }) => {
      const { message, timestamp: _, logger: __, ...fields } = log;
      if (level === logLevel.ERROR) logger?.warn(fields, message);
      else if (level === logLevel.WARN) logger?.debug(fields, message);
    };
}
