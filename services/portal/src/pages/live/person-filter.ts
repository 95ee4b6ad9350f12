/** The filter for one player's messages on Live and Explore. The address contains keyed hashes of the id, never the id. */
import { type HtmlValue, html } from '@playline/api-docs';
import { field, hidden } from '../../frame/components.ts';
import type { FormAction, FormValues, Visit } from '../../frame/page.ts';
import { scopeOf } from '../../frame/scope.ts';
import { hrefWith } from '../../href.ts';
import type { PageParts } from '../index.ts';
import { toIdentityKeys } from '../people/subject.ts';

/** Parameters that do not apply to the messages of another player. */
const DROPPED = { identity: '', after: '', message: '', done: '' };

export const createPersonAction = (parts: Pick<PageParts, 'people' | 'writeAudit'>, page: string): FormAction => ({
  access: 'people.raw-ids',
  run: async (visit, values) => {
    const identity = toIdentityKeys(values.text('person'), scopeOf(visit).environment.id, parts.people.keyOf).join('.');
    await parts.writeAudit(visit, { action: 'person.find', detail: { page, by: 'id' } });
    const query = new URLSearchParams(values.text('filter'));
    return { kind: 'redirect', to: hrefWith({ path: visit.path, query }, { ...DROPPED, identity }) };
  },
});

export function toPersonFilter(visit: Visit, values?: FormValues): HtmlValue {
  if (!visit.can('people.raw-ids')) return '';
  if (visit.query.get('identity'))
    return html`<a class="chip on" href="${hrefWith(visit, DROPPED)}">One player ×<span class="visually-hidden"> Show all players</span></a>`;
  const form = visit.form(
    'person',
    html`${hidden('filter', visit.query.toString())}${field({ name: 'person', label: 'Player’s id', value: values?.text('person') ?? '', maxLength: 300 })}
<button class="outline">Show this player</button> <span class="hint">An anonymous id or a user id, as sent by clients. It never appears in a URL or a log.</span>`,
    { className: 'filters' },
  );
  return html`<details class="more"${values === undefined ? '' : html` open`}><summary class="chip">+ player</summary>${form}</details>`;
}
