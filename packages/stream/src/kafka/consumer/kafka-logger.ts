import type { Logger } from '@playline/runtime';
import { type logCreator, logLevel } from 'kafkajs';

/** Writes log lines of kafkajs to our log. Its lines of level info do not help an operator, so they are left out. */
export function createKafkaLogger(logger: Logger | undefined): logCreator {
  return () =>
    ({ level, log }) => {
      const { message, timestamp: _, logger: __, ...fields } = log;
      if (level === logLevel.ERROR) logger?.warn(fields, message);
      else if (level === logLevel.WARN) logger?.debug(fields, message);
    };
}
