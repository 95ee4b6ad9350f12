import type { MessageRejection } from './message.ts';

/**
 * What an answer means for the batch. A 2xx and any 4xx but 429 are final; after any other answer the batch is sent
 * again.
 */
export type Answer =
  /** Everything but the rejected messages is stored. The batch is never sent again. */
  | { kind: 'taken'; rejections: MessageRejection[] }
  /** Nothing was stored, and sending the batch again would not change that. */
  | { kind: 'refused'; rejections: MessageRejection[]; status: number; code?: string; message?: string }
  /**
   * It is not known what was stored. The same messages are sent again under the same ids, `afterMs` later at the
   * earliest.
   */
  | { kind: 'later'; afterMs: number };

/** Timers overflow after 24 days. If the service asks for a longer pause, the client asks again once a day. */
const RETRY_AFTER_MAX_S = 24 * 60 * 60;

interface Body {
  accepted?: unknown;
  rejections?: MessageRejection[];
  code?: string;
  message?: string;
}

/**
 * Reads an answer to its end. A 2xx whose body is no MessagesResponse does not count as delivery: it may be the login
 * page of a captive portal.
 */
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
