import { PublicError } from '@playline/errors';
import type { Exchange } from '@playline/http';

/**
 * Takes requests for the portal's own host alone: another name that leads here may be an attacker's (DNS rebinding).
 * Whoever comes by the address 127.0.0.1 where the portal is called localhost is led there, since passkeys know names only.
 * @returns false when the exchange has been answered by that
 */
export function assertOurHost(origin: URL, exchange: Exchange): boolean {
  const { request } = exchange;
  const host = request.headers.host ?? '';
  if (host === origin.host) return true;
  const isOwnAddress = origin.hostname === 'localhost' && host === `127.0.0.1:${origin.port}`;
  if (isOwnAddress && request.method === 'GET') {
    exchange.answerEmpty(307, ['location', origin.origin + (request.url ?? '/'), 'cache-control', 'no-store']);
    return false;
  }
  throw new PublicError('VALIDATION_ERROR', { message: `The portal is at ${origin.origin}, and answers there alone.` });
}

/**
 * A change is asked for from a page of ours. Browsers say where a form stood in `sec-fetch-site`; older ones in `origin`,
 * which is `null` from pages without referrer, as ours are.
 * @throws PublicError VALIDATION_ERROR for a form of any other page, and for one that nobody vouches for
 */
export function assertOurOrigin(origin: URL, { request }: Exchange): void {
  const { origin: given = 'null', 'sec-fetch-site': site } = request.headers;
  const isOurs = given === origin.origin || (given === 'null' && site !== undefined);
  if (isOurs && (site === undefined || site === 'same-origin')) return;
  throw new PublicError('VALIDATION_ERROR', { message: 'The form was sent from another page than one of the portal.' });
}
