import { type HtmlValue, html } from '@playline/api-docs';
import { emptyState, field, table, time } from '../../frame/parts.ts';
import type { PortalReads } from '../../reads/index.ts';

/** A stored message, as far as a search shows it. */
export interface FoundMessage {
  readonly messageId: string;
  readonly type: string;
  readonly name: string;
  /** Epoch milliseconds. */
  readonly receivedAt: number;
  readonly surface: string;
  readonly traceId: string;
}

/**
 * Stored messages of one environment with exactly this message id; more than one where it was sent with several names or
 * on several days.
 * @throws Error when the store cannot answer
 */
export type SearchMessages = (question: {
  readonly environmentId: string;
  readonly id: string;
}) => Promise<readonly FoundMessage[]>;

export const FIND_FIELD = 'find';
const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The search over the views of the portal. */
export function createSearchMessages(reads: Pick<PortalReads, 'message'>): SearchMessages {
  return async ({ environmentId, id }) => {
    const found = await reads.message({ environmentId, messageId: id, sight: 'masked ids' });
    return found.map(({ messageId, type, name, receivedMs: receivedAt, surface, traceId }) => ({
      ...{ messageId, type, name, receivedAt, surface, traceId },
    }));
  };
}

/** What is stored under an id, beside what comes in; the answer stands in the page, so it works without JavaScript. */
export async function toSearch(
  searchMessages: SearchMessages | null,
  { environmentId, path, text }: { readonly environmentId: string; readonly path: string; readonly text: string },
): Promise<HtmlValue> {
  if (searchMessages === null)
    return emptyState('Exact search', html`<p>Stored messages cannot be searched from this portal.</p>`);
  const id = text.trim().toLowerCase();
  return html`<section><h2>Exact search</h2>
<p>Looks through everything that is stored, by the id that a client gave a message.</p>
<form class="form" method="get" action="${path}">${field({ name: FIND_FIELD, label: 'Message id (UUID)', value: text, charactersMax: 36 })}<button>Search</button></form>
${id === '' ? '' : await toFound(searchMessages, environmentId, id)}</section>`;
}

async function toFound(searchMessages: SearchMessages, environmentId: string, id: string): Promise<HtmlValue> {
  if (!ID.test(id)) return html`<p role="alert">Give a message id: a UUID, as clients send it.</p>`;
  const found = await searchMessages({ environmentId, id });
  if (found.length === 0)
    return html`<p>Nothing is stored under this id here. What was sent less than two seconds ago may be on its way; what was rejected is among the rejections.</p>`;
  return table(
    'Stored messages',
    ['Received', 'Type', 'Name', 'Surface', 'Message id', 'Trace id'],
    found.map((each) => [
      ...[time(each.receivedAt), each.type, each.name, each.surface],
      ...[html`<code>${each.messageId}</code>`, html`<code>${each.traceId}</code>`],
    ]),
  );
}
