import { html } from '@playline/api-docs';
import { invalidField } from '@playline/errors';
import { NO_PARTING, toParting } from '@playline/people';
import type { Answer, Deed, FormValues, PortalPage, Visit } from '../../frame/page.ts';
import { copyable } from '../../frame/parts.ts';
import { placeOf } from '../../frame/place.ts';
import type { PagesParts } from '../index.ts';
import { findPerson } from './found.ts';
import { erasuresPath, toHeldIds, toPerson, toSearch } from './show.ts';
import { erasureKeysOf, subjectOf } from './subject.ts';

type Parts = Pick<PagesParts, 'people' | 'reads' | 'note'>;

/** While Redis does not answer, the search is shown all the same. */
async function heldIds({ people }: Parts, environmentId: string) {
  const suspects = await people.suspects(environmentId).catch(() => null);
  return suspects === null ? html`<p class="quiet">Held ids cannot be read now.</p>` : toHeldIds(suspects);
}

/** Who is one person, why, and what each has chosen; and what may be done about it. */
export function createPeoplePage(parts: Parts): PortalPage {
  return {
    path: '/projects/:project/environments/:environment/people',
    access: 'people.raw-ids',
    show: async (visit, fault) => {
      const { environment } = placeOf(visit);
      const deed = fault?.values.text('deed');
      // The message about the mistake stands above the person that the form was about.
      if (fault !== undefined && (deed === 'erase' || deed === 'unlink')) return showPerson(parts, visit, fault.values);
      return {
        kind: 'page',
        title: `People of ${environment.name}`,
        content: html`<p class="quiet">Find a person by any id that clients have sent.</p>${toSearch(visit, fault?.values)}${await heldIds(parts, environment.id)}`,
      };
    },
    deeds: {
      search: {
        access: 'people.raw-ids',
        run: async (visit, values) => {
          const answer = await showPerson(parts, visit, values);
          await parts.note(visit, { action: 'person.find', detail: { page: 'people', by: values.text('kind') } });
          return answer;
        },
      },
      erase: erasing(parts),
      unlink: unlinking(parts),
    },
  };
}

async function showPerson(parts: Parts, visit: Visit, values: FormValues): Promise<Answer> {
  const { environment } = placeOf(visit);
  const subject = subjectOf(values, environment.id, parts.people.keyOf);
  const found = await findPerson(parts, subject, visit.signal);
  return {
    kind: 'page',
    title: `People of ${environment.name}`,
    content: html`${toSearch(visit)}${toPerson(visit, found)}`,
  };
}

const erasing = ({ people, note }: Parts): Deed => ({
  access: 'erasure.request',
  isFresh: true,
  run: async (visit, values) => {
    const { environment } = placeOf(visit);
    const subject = subjectOf(values, environment.id, people.keyOf);
    const subjectKeys = erasureKeysOf(subject, people.keyOf);
    if (values.text('confirm') !== values.text('id'))
      throw invalidField('confirm', 'Nothing was erased: type the same id again to erase this person.');
    const { traceId, traceparent } = visit.exchange;
    const wanted = { environmentId: environment.id, subjectKeys, traceId, traceparent };
    const erasureId = await people.requestErasure(wanted);
    await note(visit, { action: 'erasure.request', object: erasureId });
    return {
      kind: 'page',
      title: 'The erasure is asked for',
      content: html`<p>Its id: ${copyable(erasureId, 'the id of the erasure')}</p>
<p>It is done within minutes. <a href="${erasuresPath(visit)}">Erasures</a> shows how far it has come, and gives its receipt.</p>
<p><a class="button" href="${visit.path}">Back to people</a></p>`,
    };
  },
});

const unlinking = ({ people, note }: Parts): Deed => ({
  access: 'people.unlink',
  isFresh: true,
  run: async (visit, values) => {
    const { environment } = placeOf(visit);
    const subject = subjectOf(values, environment.id, people.keyOf);
    const chosen = new Set(values.all('member'));
    const household = await people.household(subject);
    const keys = household.members.map(({ key }) => key).filter((key) => chosen.has(key.toString('hex')));
    if (keys.length === 0 || keys.length !== chosen.size)
      throw invalidField('member', 'Choose identities of this person. It may have changed: look at it again.');
    const parting = toParting(keys, household);
    if (typeof parting === 'string') throw invalidField('member', NO_PARTING[parting]);
    const { traceId } = visit.exchange;
    const isSeen = await people.requestUnlink({ ...parting, environmentId: environment.id, traceId });
    const detail = { split: parting.gone.length, stayed: parting.stayed.length };
    await note(visit, { action: 'identity.unlink', object: household.personKey.toString('hex'), detail });
    return {
      kind: 'page',
      title: isSeen ? 'They are split' : 'The split is asked for',
      content: html`<p>${isSeen ? 'They are two persons now.' : 'Nobody has decided it yet: it waits for the linkers, or for an erasure that holds this person, or was refused. Find the person again: the decisions about links tell.'}</p>
<p>Trace id: <code>${traceId}</code></p>
<p><a class="button" href="${visit.path}">Back to people</a></p>`,
    };
  },
});
