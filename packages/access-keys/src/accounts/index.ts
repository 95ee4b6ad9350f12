export * from './account.ts';
export { type AccountContext, linkNotGood } from './context.ts';
export * from './credentials.ts';
export * from './first-link.ts';
export {
  acceptInvitation,
  createFirstAdministrator,
  findInvited,
  INVITATION_MS,
  type Invitation,
  type Invited,
  invite,
  type NewCredentials,
  type NewPerson,
  resetAccess,
  revokeInvitation,
} from './invitations.ts';
export * from './join.ts';
export { normalizeLogin, toLogin, toPersonName, toReturnPath } from './login.ts';
export * from './members.ts';
export type { OneTimeTexts, PurposeAndText } from './one-time-texts.ts';
export * from './open-id.ts';
export * from './open-id-sign-in.ts';
export * from './passkeys.ts';
export * from './passwords.ts';
export * from './roles.ts';
export * from './sessions.ts';
export * from './sign-in.ts';
