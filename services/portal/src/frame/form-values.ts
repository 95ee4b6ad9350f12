import type { IncomingMessage } from 'node:http';
import { PublicError } from '@playline/errors';
import { type BytesInFlight, planFormBody, readBody } from '@playline/http';
import type { FormValues } from './page.ts';

/** The longest form is one with a pasted text; a page sends less than a tenth of it. */
const BODY_BYTES_MAX = 64 * 1024;
/** Fields of a form; more are nobody's. */
const FIELDS_MAX = 200;

/**
 * Reads the body of a form. The caller is not known yet, so each address has its share of the memory of all forms.
 * @throws PublicError VALIDATION_ERROR when it is none, or too large; TOO_MANY_REQUESTS_ERROR when there is no memory
 */
export async function readForm(request: IncomingMessage, forms: BytesInFlight, address: string): Promise<FormValues> {
  const plan = planFormBody(request, BODY_BYTES_MAX);
  const reservation = forms.admit(address, plan.declaredBytes ?? BODY_BYTES_MAX);
  try {
    const body = await readBody(request, plan, { reservation });
    return toFormValues(body.toString('utf8'));
  } finally {
    reservation.release();
  }
}

/** @throws PublicError VALIDATION_ERROR for more fields than a form has */
export function toFormValues(text: string): FormValues {
  const values = new URLSearchParams(text);
  if (values.size > FIELDS_MAX) throw new PublicError('VALIDATION_ERROR', { message: 'The form has too many fields.' });
  return { text: (name) => (values.get(name) ?? '').trim(), all: (name) => values.getAll(name) };
}

/** What a form has before anybody typed. */
export const NO_VALUES: FormValues = toFormValues('');
