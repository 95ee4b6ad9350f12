import { type AccountRecord, invite, ROLES, type Role, revokeInvitation, roleIn, setRole } from '@playline/access-keys';
import { type HtmlValue, html } from '@playline/api-docs';
import { invalidField, PublicError } from '@playline/errors';
import { choice, copyable, disclosure, field, hidden, table, time } from '../../frame/components.ts';
import { projectPath } from '../../frame/layout.ts';
import type { Answer, FormAction, FormValues, PortalPage, Visit } from '../../frame/page.ts';
import { projectOf } from '../../frame/scope.ts';
import { beginSession, contextOf, type SignInPagesParts } from '../sign-in/parts.ts';

/** What members pages work with besides. */
export interface MembersParts extends SignInPagesParts {
  readonly frame: SignInPagesParts['frame'] & { readonly origin: URL };
}

const ROLE_TEXTS: Readonly<Record<Role, string>> = {
  owner: 'owner: everything, also members and erasures',
  developer: 'developer: makes and refreshes keys',
  analyst: 'analyst: reads, never raw ids',
};
const CHOICES = ROLES.map((value) => ({ value, text: ROLE_TEXTS[value] }));

/** Who has a role in a project. */
export function createMembersPage(parts: MembersParts): PortalPage {
  return {
    path: '/projects/:project/members',
    access: 'members.read',
    notices: {
      changed: 'The role is changed. The sessions of the member have ended.',
      removed: 'The member has no role in the project any more.',
      revoked: 'The invitation is taken back.',
    },
    show: async (visit, fault) => {
      const { id } = projectOf(visit);
      const members = (await parts.accounts.all()).filter((account) => roleIn(account, id) !== null);
      return { kind: 'page', title: 'Members', content: toContent(visit, members, fault?.values) };
    },
    actions: { invite: inviting(parts), role: changingRole(parts), remove: removing(parts), revoke: revoking(parts) },
  };
}

/** @throws PublicError VALIDATION_ERROR */
export function chosenRole(values: FormValues): Role {
  const role = ROLES.find((each) => each === values.text('role'));
  if (role === undefined) throw invalidField('role', 'Choose a role: owner, developer or analyst.');
  return role;
}

/** The link of an invitation, shown this once. */
export function toInvited(origin: URL, text: string, back: string): Answer {
  const link = new URL(`/invitation?code=${encodeURIComponent(text)}`, origin).href;
  return {
    kind: 'page',
    title: 'Invitation',
    content: html`<p>Give this link to the person whom you invite, and to nobody else. It is shown this once, is good once, and for 72 hours. Whoever has an account here signs in, and takes it with that.</p>
<p>${copyable(link, 'the link')}</p>
<p><a class="button" href="${back}">Back</a></p>`,
  };
}

const pathOf = (visit: Visit) => `${projectPath(projectOf(visit).id)}/members`;

const inviting = (parts: MembersParts): FormAction => ({
  access: 'members.invite',
  needsFreshSignIn: true,
  run: async (visit, values) => {
    const roles = [{ projectId: projectOf(visit).id, role: chosenRole(values) }];
    const wanted = { name: values.text('name'), roles, isAdministrator: false };
    const { text } = await invite(contextOf(parts, visit), wanted);
    return toInvited(parts.frame.origin, text, pathOf(visit));
  },
});

/** The account of a form. One that is no member is not there for an owner, in the words for an account that nobody has. */
async function memberOf(parts: MembersParts, visit: Visit, values: FormValues): Promise<string> {
  const id = values.text('account');
  const account = (await parts.accounts.all()).find((each) => each.id === id);
  const isMember = account !== undefined && roleIn(account, projectOf(visit).id) !== null;
  if (isMember || visit.mayDo('accounts.change')) return id;
  throw new PublicError('RESOURCE_NOT_FOUND', { message: 'There is no such account.' });
}

const changingTo = (parts: MembersParts, roleOf: (values: FormValues) => Role | null, notice: string): FormAction => ({
  access: 'members.change',
  needsFreshSignIn: true,
  run: async (visit, values) => {
    const [accountId, projectId] = [await memberOf(parts, visit, values), projectOf(visit).id];
    const role = roleOf(values);
    const changed = await setRole(contextOf(parts, visit), { accountId, projectId, role });
    if (role === null) await parts.writeAudit(visit, { action: 'member.remove', object: accountId });
    const isOwn = accountId === visit.account?.id;
    const cookie = isOwn ? { cookie: await beginSession(parts, visit, { account: changed }) } : {};
    return { kind: 'see', to: isOwn ? '/' : pathOf(visit), notice, ...cookie };
  },
});

const changingRole = (parts: MembersParts) => changingTo(parts, chosenRole, 'changed');
const removing = (parts: MembersParts) => changingTo(parts, () => null, 'removed');

const revoking = (parts: MembersParts): FormAction => ({
  access: 'members.invite',
  run: async (visit, values) => {
    await revokeInvitation(contextOf(parts, visit), await memberOf(parts, visit, values));
    return { kind: 'see', to: pathOf(visit), notice: 'revoked' };
  },
});

function toContent(visit: Visit, members: readonly AccountRecord[], values?: FormValues): HtmlValue {
  const mayChange = visit.mayDo('members.change');
  const heads = ['Name', 'Login', 'State', 'Role', ...(mayChange ? [''] : [])];
  const rows = members
    .toSorted((a, b) => a.name.localeCompare(b.name))
    .map((account) => [
      account.name,
      account.login,
      toState(account),
      toRole(visit, account, mayChange),
      ...(mayChange ? [toEnd(visit, account)] : []),
    ]);
  const form = visit.form(
    'invite',
    html`${field({ name: 'name', label: 'Name of the person', value: values?.text('name') ?? '', isRequired: true, charactersMax: 200 })}
${choice({ name: 'role', label: 'Role', value: values?.text('role') || 'developer', choices: CHOICES })}
<button>Make the link</button>`,
  );
  return html`${members.length === 0 ? html`<p>Nobody has a role in this project but administrators of the instance.</p>` : table('Members', heads, rows)}
${visit.mayDo('members.invite') ? disclosure('Invite somebody', form, values?.text('deed') === 'invite') : ''}`;
}

/** What stands of an account besides its role. */
export function toState({ state, invitation }: AccountRecord): HtmlValue {
  if (state === 'invited') return html`invited, until ${invitation === null ? '–' : time(invitation.expiresAt)}`;
  return state;
}

function toRole(visit: Visit, account: AccountRecord, mayChange: boolean): HtmlValue {
  const role = roleIn(account, projectOf(visit).id) ?? '';
  if (!mayChange) return role;
  return visit.form(
    'role',
    html`${hidden('account', account.id)}${choice({ name: 'role', label: `Role of ${account.name}`, value: role, choices: CHOICES })}<button class="plain">Change</button>`,
    { className: 'inline' },
  );
}

function toEnd(visit: Visit, account: AccountRecord): HtmlValue {
  const [deed, text] = account.state === 'invited' ? ['revoke', 'Take the invitation back'] : ['remove', 'Remove'];
  return visit.form(
    deed,
    html`${hidden('account', account.id)}<button class="plain">${text}<span class="unseen"> ${account.name}</span></button>`,
    {
      className: 'inline',
    },
  );
}
