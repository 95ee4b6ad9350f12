import { randomUUID } from 'node:crypto';
import {
  type AccountContext,
  type AccountRecord,
  acceptFirstLink,
  acceptInvitation,
  findInvited,
  isFirstLink,
  type NewPerson,
} from '@playline/access-keys';
import type { Visit } from '../../frame/page.ts';
import type { PageParts } from '../index.ts';

export interface Invitee extends NewPerson {
  readonly id: string;
}

/** A one-time link. It can be opened any number of times, but accepted only once. */
export interface Link {
  readonly path: string;
  readonly title: string;
  /** Returns the invited account, 'new' if accepting the link creates an account, or null if the link is invalid. */
  find(code: string): Promise<AccountRecord | 'new' | null>;
  accept(context: AccountContext, code: string, person: Invitee): Promise<AccountRecord>;
}

export const INVITATION_PATH = '/invitation';

export function createLinks(parts: Pick<PageParts, 'accounts' | 'oneTimeTokens'>): readonly Link[] {
  const stores = { oneTimeTokens: parts.oneTimeTokens };
  const createInvitationLink = (path: string, title: string): Link => ({
    path,
    title,
    find: async (code) => findInvited(await parts.accounts.all(), code, Date.now()),
    accept: (context, text, person) => acceptInvitation(context, { text, person }),
  });
  return [
    {
      path: '/first-sign-in',
      title: 'Become the first administrator',
      find: async (code) => ((await isFirstLink(stores, code)) ? 'new' : null),
      accept: (context, text, person) => acceptFirstLink({ ...context, ...stores }, { text, person }),
    },
    createInvitationLink(INVITATION_PATH, 'Accept the invitation'),
    createInvitationLink('/reset', 'Restore access'),
  ];
}

export const toAccountId = (found: AccountRecord | 'new'): string => (found === 'new' ? randomUUID() : found.id);

/** The link authorises the change, so no sign-in is required. The invitee is recorded as the author of the change. */
export function toInviteeContext(
  { accounts, sessions }: Pick<PageParts, 'accounts' | 'sessions'>,
  visit: Visit,
  accountId: string,
): AccountContext {
  return { store: accounts.storeFor({ ...visit.author, changedBy: accountId }), sessions, actorId: null };
}
