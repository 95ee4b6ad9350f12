import { host } from './host.ts';
import { CONTEXT_CHARACTERS_MAX, CONTEXT_CHARACTERS_MAX_ELSE, type EventContext } from './message.ts';

/**
 * Returns a function that reads a message's `context`: what the page and the machine report now, overridden by the
 * fields that the caller gives. Strings are cut to the contract's lengths, so that a long address does not make the
 * service reject the message.
 */
export function createContext(
  library: { library: string; libraryVersion: string },
  given: (() => Partial<EventContext>) | undefined,
): () => EventContext {
  const { locale, timeZone: timezone } = Intl.DateTimeFormat().resolvedOptions();
  return () => {
    const { navigator, screen, location, document } = host;
    const context: EventContext = {
      ...library,
      userAgent: navigator?.userAgent,
      locale,
      timezone,
      ...(document && {
        screen: screen && `${screen.width}x${screen.height}`,
        screenDensity: host.devicePixelRatio,
        pageUrl: location?.href,
        pagePath: location?.pathname,
        pageReferrer: document.referrer,
        pageTitle: document.title,
        browserLanguage: navigator?.language,
      }),
      ...given?.(),
    };
    return Object.fromEntries(
      Object.entries(context).map(([name, value]) => [name, typeof value === 'string' ? cut(name, value) : value]),
    ) as unknown as EventContext;
  };
}

function cut(name: string, text: string): string {
  const max = CONTEXT_CHARACTERS_MAX[name as keyof typeof CONTEXT_CHARACTERS_MAX] ?? CONTEXT_CHARACTERS_MAX_ELSE;
  // Half of a surrogate pair is not valid text: the service would store a replacement character instead.
  return text.slice(0, max).replace(/[\uD800-\uDBFF]$/, '');
}
