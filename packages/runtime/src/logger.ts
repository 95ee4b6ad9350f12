import { type DestinationStream, type Logger as PinoLogger, pino } from 'pino';

export type Logger = PinoLogger;

const ACCESS_KEY = /\b(?:[ps]k|rl)_[a-z0-9]+(_test)?-[0-9A-Za-z]+/g;
const URL_SECRET = /(\w+:\/\/[^\s/:@]*:)[^\s/@]+@/g;

/** Replaces keys and passwords in a string before it is logged or returned. */
export function redactSecrets(text: string): string {
  return text.replace(ACCESS_KEY, '[key]').replace(URL_SECRET, '$1[password]@');
}

function redactValue(value: unknown): unknown {
  if (typeof value === 'string') return redactSecrets(value);
  if (value instanceof Error)
    return { type: value.name, message: redactSecrets(value.message), stack: redactSecrets(value.stack ?? '') };
  return value;
}

/** Creates a logger that writes JSON lines without keys and passwords to standard output or to `destination`. */
export function createLogger(options: { service: string; level: string }, destination?: DestinationStream): Logger {
  return pino(
    {
      level: options.level,
      base: { service: options.service },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: {
        level: (label) => ({ level: label }),
        log: (fields) => Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, redactValue(value)])),
      },
      hooks: {
        logMethod(args, method) {
          method.apply(this, args.map((arg) => (typeof arg === 'string' ? redactSecrets(arg) : arg)) as typeof args);
        },
      },
    },
    destination as DestinationStream,
  );
}
