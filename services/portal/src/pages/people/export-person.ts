/** A file with everything that is stored about a person, for requests under privacy laws. */
import { keysOf, type PersonMembers } from '@playline/people';
import { CSV_LINES_MAX, toIso } from '../../frame/csv.ts';
import type { PageResponse } from '../../frame/page.ts';
import { readManyEntries, type TimelineEntry } from '../../reads/index.ts';
import { type PersonParts, toNewest } from './find-person.ts';

interface PersonExport {
  readonly environmentId: string;
  readonly person: PersonMembers;
  readonly nowMs: number;
  readonly signal: AbortSignal;
}

/** @returns a JSON object, streamed, with one entry per line, newest first */
export function toPersonFile(
  { reads }: Pick<PersonParts, 'reads'>,
  search: PersonExport,
): Extract<PageResponse, { kind: 'streamed file' }> {
  const name = `person-${search.person.personKey.toString('hex')}.json`;
  return { kind: 'streamed file', name, type: 'application/json', chunks: toChunks(reads, search) };
}

async function* toChunks(reads: PersonParts['reads'], { environmentId, person, nowMs, signal }: PersonExport) {
  const identityIds = keysOf(person).map((key) => key.toString('hex'));
  const ids = await reads.ids({ environmentId, identityIds, idAccess: 'raw ids' }, { signal });
  const identities = identityIds.map((identityKey, index) => ({
    identityKey,
    type: person.members[index]?.kind ?? null,
    id: ids.get(identityKey) ?? null,
  }));
  yield `{"environmentId":${JSON.stringify(environmentId)},"exportedAt":"${toIso(nowMs)}","identities":${JSON.stringify(identities)},"entries":[`;
  const search = { environmentId, identityIds, show: '' as const, after: toNewest(nowMs) };
  const batches = readManyEntries((each) => reads.timeline(each, { signal }), search, CSV_LINES_MAX);
  let separator = '\n';
  for (let batch = await batches.next(); ; batch = await batches.next()) {
    if (batch.done === true) {
      // A file that is too long names the time of its oldest entry.
      yield `\n],"isComplete":${batch.value === null}}\n`;
      return;
    }
    if (batch.value.length > 0) yield separator + batch.value.map(toLine).join(',\n');
    if (batch.value.length > 0) separator = ',\n';
  }
}

/** `detail` is inserted as stored, so that numbers keep all digits. */
function toLine({ entry, happenedMs, what, name, origin, messageId, traceId, detail, ...link }: TimelineEntry): string {
  const time = toIso(happenedMs);
  if (entry === 'consent')
    return JSON.stringify({ entry, time, status: what, source: origin, identityKey: link.identityId, traceId });
  if (entry === 'link') {
    const ids = [link.identityId, link.otherId];
    return JSON.stringify({ entry, time, link: what, outcome: name, reason: origin, identityKeys: ids, messageId });
  }
  const fields = { entry, time, type: what, event: name, surface: origin, messageId, traceId };
  return `${JSON.stringify(fields).slice(0, -1)},"message":${detail}}`;
}
