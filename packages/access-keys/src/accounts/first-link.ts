import { PublicError } from '@playline/errors';
import type { Placed, RecordLogReader } from '../records/record-log.ts';
import { isLater } from '../records/record-view.ts';
import { type AccountRecord, hasAdministrator } from './account.ts';
import { type AccountContext, conflict, linkNotGood } from './context.ts';
import { createFirstAdministrator } from './invitations.ts';
import type { OneTimeTexts } from './one-time-texts.ts';

/** How long the link is good that makes the first administrator. */
export const FIRST_LINK_LIFETIME_S = 15 * 60;
const PURPOSE = 'first-administrator';

interface FirstLinkParts {
  readonly log: RecordLogReader<AccountRecord>;
  readonly oneTimeTexts: Pick<OneTimeTexts, 'issue' | 'look' | 'take'>;
}

/**
 * Creates the text of the link with which a person becomes the first administrator. Whether there is an administrator
 * already is read from the log and not from Redis: an emptied Redis must not give the instance away.
 * @throws PublicError CONFLICT_ERROR when there is an administrator; what the log throws when it cannot be read
 */
export async function issueFirstLink({ log, oneTimeTexts }: FirstLinkParts): Promise<string> {
  if (hasAdministrator(await readLog(log)))
    throw conflict('This instance has an administrator: ask for an invitation.');
  return oneTimeTexts.issue({ purpose: PURPOSE, value: '', lifetimeS: FIRST_LINK_LIFETIME_S });
}

/** Whether a link is still valid. Asking does not use it up. */
export async function isFirstLink(
  { oneTimeTexts }: Pick<FirstLinkParts, 'oneTimeTexts'>,
  text: string,
): Promise<boolean> {
  return (await oneTimeTexts.look({ purpose: PURPOSE, text })) !== null;
}

/**
 * Makes the person who has a valid link the first administrator. The link is used up by success, not by a failed try.
 * Two people who use one link at the same moment are no danger, since the log accepts only one first administrator.
 * @param person `id`: as for `createFirstAdministrator`
 * @throws PublicError RESOURCE_NOT_FOUND when the link is not valid. If the reason is that there is an administrator,
 * the link is used up. And as `createFirstAdministrator`; the link then stays valid
 */
export async function acceptFirstLink(
  context: AccountContext & Pick<FirstLinkParts, 'oneTimeTexts'>,
  { text, person }: { readonly text: string; readonly person: Parameters<typeof createFirstAdministrator>[1] },
): Promise<AccountRecord> {
  if (!(await isFirstLink(context, text))) throw linkNotGood();
  const use = () => context.oneTimeTexts.take({ purpose: PURPOSE, text });
  try {
    const account = await createFirstAdministrator(context, person);
    await use();
    return account;
  } catch (fault) {
    const isConflict = fault instanceof PublicError && fault.code === 'CONFLICT_ERROR';
    if (!isConflict || !hasAdministrator(await context.store.readAll())) throw fault;
    await use();
    throw linkNotGood();
  }
}

/** Each account as the log has it last. */
async function readLog(log: RecordLogReader<AccountRecord>): Promise<AccountRecord[]> {
  const last = new Map<string, Placed<AccountRecord>>();
  for (const range of await log.bounds())
    for (const placed of await log.read(range))
      if (isLater(placed, last.get(placed.record.id))) last.set(placed.record.id, placed);
  return [...last.values()].map(({ record }) => record);
}
