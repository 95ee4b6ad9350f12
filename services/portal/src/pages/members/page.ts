/** A project's members, their roles, and open invitations. */
import { type AccountRecord, invite, ROLES, type Role, revokeInvitation, roleIn, setRole } from '@playline/access-keys';
import { type HtmlValue, html, type Markup } from '@playline/api-docs';
import { invalidField, PublicError } from '@playline/errors';
import { copyable, disclosure, emptyState, status, table, time } from '../../frame/components.ts';
import { buttonForm, choice, field, hidden } from '../../frame/forms.ts';
import type { FormAction, FormValues, PageResponse, PortalPage, Visit } from '../../frame/page.ts';
import { projectOf } from '../../frame/scope.ts';
import type { PageParts } from '../index.ts';
import { beginSession, toContext } from '../sign-in/parts.ts';

const ROLE_TEXTS: Readonly<Record<Role, string>> = {
  owner: 'owner: full access, including members and erasures',
  developer: 'developer: can create and refresh keys',
  analyst: 'analyst: read-only, without raw ids',
};
const ROLE_CHOICES = ROLES.map((value) => ({ value, text: ROLE_TEXTS[value] }));

export function createMembersPage(parts: PageParts): PortalPage {
  return {
    path: '/projects/:project/members',
    access: 'members.read',
    notices: {
      changed: 'Role changed. The member’s sessions have ended.',
      removed: 'Member removed from the project.',
      revoked: 'Invitation revoked.',
    },
    show: async (visit, failure) => {
      const { id } = projectOf(visit);
      const members = (await parts.accounts.all()).filter((account) => roleIn(account, id) !== null);
      return { kind: 'page', title: 'Members', content: toContent(visit, members, failure?.values) };
    },
    actions: {
      invite: inviteAction(parts),
      role: changeAction(parts, readRole, 'changed'),
      remove: changeAction(parts, () => null, 'removed'),
      revoke: {
        access: 'members.invite',
        run: async (visit, values) => {
          await revokeInvitation(toContext(parts, visit), await readMemberId(parts, visit, values));
          return { kind: 'redirect', notice: 'revoked' };
        },
      },
    },
  };
}

function readRole(values: FormValues): Role {
  const role = ROLES.find((each) => each === values.text('role'));
  if (role === undefined) throw invalidField('role', 'Choose a role: owner, developer or analyst.');
  return role;
}

/** The page shown after an invitation is created. No other page shows the link. */
export function toInvitationPage(origin: URL, code: string, returnPath: string): PageResponse {
  const link = new URL(`/invitation?code=${encodeURIComponent(code)}`, origin).href;
  return {
    kind: 'page',
    title: 'Invitation',
    content: html`<div class="secret"><p>Send this link only to the person you are inviting. It is shown only once, can be used once, and expires after 72 hours. A person who already has an account can sign in and accept the invitation with it.</p>
<p>${copyable(link, 'the link')}</p></div>
<p><a class="button" href="${returnPath}">Back</a></p>`,
  };
}

const inviteAction = (parts: PageParts): FormAction => ({
  access: 'members.invite',
  needsFreshSignIn: true,
  run: async (visit, values) => {
    const roles = [{ projectId: projectOf(visit).id, role: readRole(values) }];
    const invitation = { name: values.text('name'), roles, isAdministrator: false };
    const { text: code } = await invite(toContext(parts, visit), invitation);
    return toInvitationPage(parts.frame.origin, code, visit.path);
  },
});

/** Only administrators can change accounts that are not members. To owners, these accounts appear not to exist. */
async function readMemberId(parts: PageParts, visit: Visit, values: FormValues): Promise<string> {
  const id = values.text('account');
  const account = (await parts.accounts.all()).find((each) => each.id === id);
  const isMember = account !== undefined && roleIn(account, projectOf(visit).id) !== null;
  if (isMember || visit.can('accounts.change')) return id;
  throw new PublicError('RESOURCE_NOT_FOUND', { message: 'Account not found.' });
}

const changeAction = (parts: PageParts, newRole: (values: FormValues) => Role | null, notice: string): FormAction => ({
  access: 'members.change',
  needsFreshSignIn: true,
  run: async (visit, values) => {
    const [accountId, projectId] = [await readMemberId(parts, visit, values), projectOf(visit).id];
    const role = newRole(values);
    const changed = await setRole(toContext(parts, visit), { accountId, projectId, role });
    if (role === null) await parts.writeAudit(visit, { action: 'member.remove', object: accountId });
    if (accountId !== visit.account?.id) return { kind: 'redirect', notice };
    return { kind: 'redirect', to: '/', notice, cookie: await beginSession(parts, visit, { account: changed }) };
  },
});

function toContent(visit: Visit, members: readonly AccountRecord[], values?: FormValues): HtmlValue {
  const canChange = visit.can('members.change');
  const rows = members
    .toSorted((a, b) => a.name.localeCompare(b.name))
    .map((account) => {
      const cells = [
        account.name,
        account.login || '–',
        roleIn(account, projectOf(visit).id) ?? '',
        toInvitationState(account),
      ];
      if (!canChange) return cells;
      const submitted = values?.text('account') === account.id ? values : undefined;
      const detail = html`${toRoleForm(visit, account, submitted)}${toRemoveForm(visit, account)}`;
      return { cells, detail, isOpen: submitted !== undefined };
    });
  const form = visit.form(
    'invite',
    html`${field({ name: 'name', label: 'Name', value: values?.text('name') ?? '', isRequired: true, maxLength: 200 })}
${choice({ name: 'role', label: 'Role', value: values?.text('role') || 'developer', choices: ROLE_CHOICES })}
<button>Create invitation</button>`,
  );
  const list =
    members.length === 0
      ? emptyState(
          'No members yet',
          html`<p>Members appear here once you invite them. Administrators have access without being members.</p>`,
          { path: '/docs/operate#roles-and-audit-log', text: 'What each role may do' },
        )
      : table('Members', ['Name', 'Login', 'Role', 'State'], rows);
  return html`${list}
${visit.can('members.invite') ? disclosure('Invite a member', form, values?.text('form') === 'invite') : ''}`;
}

export function toInvitationState({ state, invitation }: AccountRecord): HtmlValue {
  if (state === 'invited')
    return status('wait', html`invited, expires ${invitation === null ? '–' : time(invitation.expiresAt)}`);
  return status(state === 'live' ? 'ok' : 'bad', state);
}

function toRoleForm(visit: Visit, account: AccountRecord, submitted?: FormValues): Markup {
  const role = submitted?.text('role') || (roleIn(account, projectOf(visit).id) ?? '');
  return visit.form(
    'role',
    html`${hidden('account', account.id)}${choice({ name: 'role', label: `Role of ${account.name}`, value: role, choices: ROLE_CHOICES })}<button class="outline">Change role</button>`,
    { className: 'inline' },
  );
}

function toRemoveForm(visit: Visit, { id, name, state }: AccountRecord): Markup {
  const member = { name, kind: 'danger', field: 'account', value: id } as const;
  if (state === 'invited') return buttonForm(visit, 'revoke', { text: 'Revoke invitation', ...member });
  return buttonForm(visit, 'remove', { text: 'Remove', ...member });
}
