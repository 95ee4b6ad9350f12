import { invalidField } from '@playline/errors';

/** More sites than a game has. Bounded, because each request of a page is compared with the list. */
export const ORIGINS_MAX = 50;
const ORIGIN_CHARACTERS_MAX = 255;

/**
 * Normalises origins to the form of the header `Origin`: scheme, host and port in lower case, without a default port.
 * Removes duplicates.
 * @throws PublicError VALIDATION_ERROR for a text that is no http or https origin, and for too many
 */
export function parseOrigins(texts: readonly string[]): string[] {
  const origins = [...new Set(texts.map(parseOrigin))];
  if (origins.length > ORIGINS_MAX) throw invalidField('origins', `At most ${ORIGINS_MAX} origins.`);
  return origins;
}

function parseOrigin(text: string): string {
  const url = text.length > ORIGIN_CHARACTERS_MAX || /[\s*]/.test(text) ? null : URL.parse(text);
  const isBare = url !== null && /^https?:$/.test(url.protocol) && !/^https?:\/\/[^/?#]*@|[?#]/i.test(text);
  if (!isBare || url.pathname !== '/')
    throw invalidField('origins', 'An origin is a scheme, a host and perhaps a port, such as https://game.example.');
  return url.origin;
}
