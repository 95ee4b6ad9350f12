import { describeRejection } from '@playline/contracts';
import { REJECTIONS, type RejectionEntry } from '@playline/errors';

/** The rule that a rejected field violates, with its bounds, and how to fix the client. */
export function explainRejection(rejection: { readonly code: string; readonly field: string }) {
  const { code, field } = rejection;
  const entry: RejectionEntry | null = Object.hasOwn(REJECTIONS, code)
    ? REJECTIONS[code as keyof typeof REJECTIONS]
    : null;
  return {
    sentence: describeRejection(rejection) ?? `${field}: ${code}`,
    fix: (entry?.fix ?? '').replaceAll(/`([^`]*)`/g, '“$1”'),
    docs: entry === null ? '/docs/messages' : `/docs/rejections/${code}`,
  };
}
