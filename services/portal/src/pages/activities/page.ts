import { type HtmlValue, html, type Markup } from '@playline/api-docs';
import { ACTIVITY_TYPES } from '@playline/contracts';
import { CSV_LINES_MAX } from '../../frame/csv.ts';
import { environmentPath } from '../../frame/layout.ts';
import type { PortalPage, Visit } from '../../frame/page.ts';
import { choice, emptyState, field, number, time } from '../../frame/parts.ts';
import { placeOf } from '../../frame/place.ts';
import type { ActivityPage } from '../../reads/index.ts';
import type { PagesParts } from '../index.ts';
import { toActivitiesFile } from './file.ts';
import { type Asked, isNarrowed, toAsked, toParams, toQuestion } from './question.ts';
import { type ContractWords, toTable } from './show.ts';

/** What happened on chains to the contracts that are linked to an environment. */
export function createActivitiesPage(parts: Pick<PagesParts, 'collections' | 'reads' | 'frame' | 'note'>): PortalPage {
  const { collections, reads, frame, note } = parts;
  return {
    path: '/projects/:project/environments/:environment/activities',
    access: 'project.read',
    show: async (visit) => {
      const { environment } = placeOf(visit);
      const { query, signal } = visit;
      const title = `Activities of ${environment.name}`;
      const asked = toAsked(visit, await collections.all());
      if (asked.linked.length === 0) return { kind: 'page', title, content: toUnlinked(visit) };
      const question = toQuestion(asked, visit, frame.wallClockMs());
      if (typeof question === 'string')
        return { kind: 'page', title, content: html`${toFilter(visit, asked)}<p role="alert">${question}</p>` };
      const { linked } = asked;
      if (query.get('as') === 'csv') {
        await note(visit, { action: 'activities.save', object: environment.id });
        return toActivitiesFile(reads, { environmentId: environment.id, question, linked, signal });
      }
      const [tokens, page] = await Promise.all([
        reads.tokens(linked, { signal }),
        reads.activities(question, { signal }),
      ]);
      return { kind: 'page', title, content: toContent(visit, { asked, page, words: { linked, tokens } }) };
    },
  };
}

function toUnlinked({ project, environment }: Visit): Markup {
  const path = `${environmentPath(project?.id ?? '', environment?.name ?? '')}/collections`;
  return emptyState(
    'No contract is linked yet',
    html`<p>Here stands what happens on chains to the contracts of this environment: mints, transfers, sales. <a href="${path}">Link a contract</a>, and all that is known of it is here at once, what was before as well.</p>`,
  );
}

function toFilter({ path }: Visit, { linked, collection, type, tokenId, since, until }: Asked): Markup {
  const named = linked.map(({ id, name, contractAddress }) => ({
    value: id,
    text: `${name} (${contractAddress.slice(0, 8)}…)`,
  }));
  const kinds = ACTIVITY_TYPES.map((value) => ({ value, text: value }));
  const all = { value: '', text: 'all' };
  return html`<form class="form filter" method="get" action="${path}" aria-label="Filter">
${choice({ name: 'collection', label: 'Collection', value: collection, choices: [all, ...named] })}
${choice({ name: 'kind', label: 'Kind', value: type, choices: [all, ...kinds] })}
${field({ name: 'token', label: 'Token id', value: tokenId, charactersMax: 78 })}
${field({ name: 'since', label: 'From (UTC)', value: since, charactersMax: 19 })}
${field({ name: 'until', label: 'Until (UTC)', value: until, charactersMax: 19 })}
<button class="outline">Show</button> <a href="${path}">Show all</a>
<p class="hint">Times as 2026-11-01 10:00, of when an activity was first indexed. What came or changed last stands on top.</p></form>`;
}

interface Shown {
  readonly asked: Asked;
  readonly page: ActivityPage;
  readonly words: ContractWords;
}

function toContent(visit: Visit, { asked, page, words }: Shown): Markup {
  const { activities, next } = page;
  const [older, file] = [toParams(asked), toParams(asked)];
  if (next !== null) older.set('after', `${next.updatedUs}.${next.id}`);
  file.set('as', 'csv');
  const list =
    activities.length === 0
      ? toNothing(visit, asked, page)
      : html`${toTable(activities, words)}
<p><a href="${`${visit.path}?${file}`}">Save all of them as CSV</a>, ${number(CSV_LINES_MAX)} at most.</p>`;
  const more = next === null ? '' : html`<p><a href="${`${visit.path}?${older}`}">Older activities</a></p>`;
  return html`${toFilter(visit, asked)}${list}${more}`;
}

/** Where the search gave up, was behind a page, or a filter is set, there may be others. */
function toNothing({ query }: Visit, asked: Asked, { next, searchedSinceMs }: ActivityPage): HtmlValue {
  if (next !== null)
    return html`<p>Nothing is found back to ${time(searchedSinceMs)}; look further for what is older.</p>`;
  if (query.has('after')) return html`<p>There is nothing older.</p>`;
  if (isNarrowed(asked)) return emptyState('No activity is so', html`<p>Show all to see what there is.</p>`);
  const chains = [...new Set(asked.linked.map(({ chain }) => chain))].join(', ');
  return emptyState(
    'Nothing has happened yet',
    html`<p>Of the linked contracts nothing is known on ${chains}. Whatever is minted, sold or sent there stands here within seconds of the block that is final. Nothing comes? Compare the address with that of the contract; an operator sees by <code>npm run status</code> whether the chain is followed.</p>`,
  );
}
