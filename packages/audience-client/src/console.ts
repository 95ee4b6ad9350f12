import type { ConsentLevel, MessageRejection } from './message.ts';
import type { AudienceClientOptions, DroppedMessages } from './options.ts';
import type { Post } from './post.ts';

const PREFIX = '[playline]';

/** What the client writes to the console for the developer of the game. */
export interface ConsoleReporter {
  /** A wrong call; always reported. */
  reportInvalid(call: string, fault: string): void;
  /** A call that this consent level does not allow; reported once for each level. */
  reportNoConsent(call: string, level: ConsentLevel): void;
  /** With `debug` only. */
  debug(...words: unknown[]): void;
  onRejected(rejection: MessageRejection): void;
  onDropped(dropped: DroppedMessages): void;
}

export function createConsoleReporter({ debug, onRejected, onDropped }: AudienceClientOptions): ConsoleReporter {
  const told = new Set<ConsentLevel>();
  const note = (...words: unknown[]) => {
    if (debug) console.log(PREFIX, ...words);
  };
  const warn = (...words: unknown[]) => console.warn(PREFIX, ...words);
  return {
    debug: note,
    reportInvalid: (call, fault) => console.error(PREFIX, `${call} was dropped: ${fault}`),
    reportNoConsent: (call, level) => {
      note(call, 'dropped: consent is', level);
      if (told.has(level)) return;
      told.add(level);
      const dropped = level === 'none' ? 'every later message' : 'every later identify and alias';
      warn(
        `Consent is '${level}': ${call} and ${dropped} is dropped, neither stored nor sent. When the person agrees, call ${level === 'none' ? "setConsent('anonymous') or " : ''}setConsent('full').`,
      );
    },
    onRejected: createReport(onRejected ?? ((one) => warn('The service rejected a message.', one)), note),
    // Consent that was withdrawn is no fault, so it is reported only with `debug`.
    onDropped: createReport(
      onDropped ?? ((one) => ['consent', 'invalid'].includes(one.reason) || warn('Messages were dropped.', one)),
      note,
    ),
  };
}

/** A listener of the game that throws must not stop the delivery. */
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

/** Writes each request and the meaning of its answer to the console. The request still starts before `send` returns. */
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
