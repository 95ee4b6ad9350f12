import type { MessageRejection } from './message.ts';

/** What an answer means for the batch: a 2xx and any 4xx but 429 are final, after anything else it goes again. */
export type Answer =
  /** Stored, but for the rejections. Never sent again. */
  | { kind: 'taken'; rejections: MessageRejection[] }
  /** Nothing stored, and sending it again would change nothing. */
  | { kind: 'refused'; rejections: MessageRejection[]; status: number; code?: string; message?: string }
  /** Nobody knows what is stored: the same ids again, not before `afterMs`. */
  | { kind: 'later'; afterMs: number };

/** Timers overflow after 24 days; a service that wants to be left alone for longer is asked once a day. */
const RETRY_AFTER_MAX_S = 24 * 60 * 60;

interface Body {
  accepted?: unknown;
  rejections?: MessageRejection[];
  code?: string;
  message?: string;
}

/** Reads an answer to its end. A 2xx that is no MessagesResponse (a captive portal's page) acknowledges nothing. */
export async function readAnswer(response: Response): Promise<Answer> {
  const { status } = response;
  const body = parseBody(await response.text().catch(() => ''));
  const rejections = Array.isArray(body.rejections) ? body.rejections.filter((one) => one?.messageId) : [];
  if (status >= 200 && status < 300 && typeof body.accepted === 'number') return { kind: 'taken', rejections };
  if (status >= 400 && status < 500 && status !== 429)
    return { kind: 'refused', rejections, status, code: body.code, message: body.message };
  const seconds = Number(response.headers.get('retry-after')) || 0;
  return { kind: 'later', afterMs: Math.min(Math.max(seconds, 0), RETRY_AFTER_MAX_S) * 1000 };
}

function parseBody(text: string): Body {
  try {
    return Object(JSON.parse(text));
  } catch {
    return {};
  }
}
