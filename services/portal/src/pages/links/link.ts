import { randomUUID } from 'node:crypto';
import {
  type AccountContext,
  type AccountRecord,
  acceptFirstLink,
  acceptInvitation,
  findInvited,
  isFirstLink,
  type NewPerson,
  type OneTimeTexts,
} from '@playline/access-keys';
import type { Visit } from '../../frame/page.ts';
import type { SignInPagesParts } from '../sign-in/parts.ts';

export interface LinkPagesParts extends SignInPagesParts {
  readonly oneTime: OneTimeTexts;
}

/** Whoever comes in, with the id of their account: they are who makes or changes it. */
export interface Invitee extends NewPerson {
  readonly id: string;
}

/** A link that lets somebody in, once. Looking at it takes nothing; what takes it is the form. */
export interface Link {
  readonly path: string;
  readonly title: string;
  /** The account that waits; 'new' where there is to be one, null when the link is not good. */
  find(code: string): Promise<AccountRecord | 'new' | null>;
  accept(context: AccountContext, code: string, person: Invitee): Promise<AccountRecord>;
}

/** All kinds of links. */
export function createLinks(parts: Pick<LinkPagesParts, 'accounts' | 'oneTime'>): readonly Link[] {
  return [firstOf(parts), ...[INVITATION_PATH, '/reset'].map((path) => invitationOf(parts, path))];
}

export const INVITATION_PATH = '/invitation';

function firstOf({ oneTime }: Pick<LinkPagesParts, 'oneTime'>): Link {
  const place = { oneTimeTexts: oneTime };
  return {
    path: '/first-sign-in',
    title: 'Become the first administrator',
    find: async (code) => ((await isFirstLink(place, code)) ? 'new' : null),
    accept: (context, text, person) => acceptFirstLink({ ...context, ...place }, { text, person }),
  };
}

function invitationOf({ accounts }: Pick<LinkPagesParts, 'accounts'>, path: string): Link {
  return {
    path,
    title: path === '/reset' ? 'Get back in' : 'Accept the invitation',
    find: async (code) => findInvited(await accounts.all(), code, Date.now()),
    accept: (context, text, person) => acceptInvitation(context, { text, person }),
  };
}

/** The account that somebody gets by a link. */
export const idFor = (found: AccountRecord | 'new'): string => (found === 'new' ? randomUUID() : found.id);

/** The link itself is what lets them in: nobody needs to have signed in. They are who changes their account. */
export function contextFor(
  { accounts, sessions }: Pick<SignInPagesParts, 'accounts' | 'sessions'>,
  visit: Visit,
  accountId: string,
): AccountContext {
  return { store: accounts.changedBy({ ...visit.author, changedBy: accountId }), sessions, actorId: null };
}
