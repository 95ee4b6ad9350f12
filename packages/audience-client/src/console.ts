import type { ConsentLevel, MessageRejection } from './message.ts';
import type { AudienceClientOptions, DroppedMessages } from './options.ts';
import type { Post } from './post.ts';

const PREFIX = '[playline]';

/** Logs to the console of the game's developer. */
export interface ConsoleReporter {
  /** An invalid call; always logged. */
  reportInvalid(call: string, fault: string): void;
  /** A call that the consent level does not allow; logged once for each level. */
  reportNoConsent(call: string, level: ConsentLevel): void;
  /** With `debug` only. */
  debug(...values: unknown[]): void;
  onRejected(rejection: MessageRejection): void;
  onDropped(dropped: DroppedMessages): void;
}

export function createConsoleReporter({ debug, onRejected, onDropped }: AudienceClientOptions): ConsoleReporter {
  const reported = new Set<ConsentLevel>();
  const note = (...values: unknown[]) => {
    if (debug) console.log(PREFIX, ...values);
  };
  const warn = (...values: unknown[]) => console.warn(PREFIX, ...values);
  return {
    debug: note,
    reportInvalid: (call, fault) => console.error(PREFIX, `${call} was dropped: ${fault}`),
    reportNoConsent: (call, level) => {
      note(call, 'dropped: consent is', level);
      if (reported.has(level)) return;
      reported.add(level);
      const dropped = level === 'none' ? 'every later message' : 'every later identify and alias';
      warn(
        `Consent is '${level}': ${call} and ${dropped} is dropped, neither stored nor sent. When the person agrees, call ${level === 'none' ? "setConsent('anonymous') or " : ''}setConsent('full').`,
      );
    },
    onRejected: createReport(onRejected ?? ((one) => warn('The service rejected a message.', one)), note),
    // Withdrawn consent is no fault, and invalid calls are logged already.
    onDropped: createReport(
      onDropped ?? ((one) => ['consent', 'invalid'].includes(one.reason) || warn('Messages were dropped.', one)),
      note,
    ),
  };
}

/** A throwing listener must not stop the delivery. */
function createReport<T>(listener: (report: T) => void, note: ConsoleReporter['debug']): (report: T) => void {
  return (report) => {
    note('not stored:', report);
    try {
      listener(report);
    } catch (error) {
      console.error(error);
    }
  };
}

/** Logs each request and its answer. The request still starts before `send` returns. */
export function createLoggedPost({ send, abort }: Post, note: ConsoleReporter['debug']): Post {
  return {
    abort,
    send: async (body, keepalive) => {
      const underWay = send(body, keepalive);
      note('sending:', body);
      const answer = await underWay;
      note('answer:', answer);
      return answer;
    },
  };
}
