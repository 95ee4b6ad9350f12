export * from './accounts/account.ts';
export { type AccountContext, invalidLink } from './accounts/context.ts';
export {
  acceptFirstLink,
  acceptInvitation,
  createFirstAdministrator,
  disableAccount,
  enableAccount,
  FIRST_LINK_LIFETIME_S,
  findInvited,
  findJoinable,
  INVITATION_MS,
  type Invitation,
  type Invited,
  invite,
  isFirstLink,
  issueFirstLink,
  type Joining,
  joinInvitation,
  type NewCredentials,
  type NewPerson,
  removeAccount,
  resetAccess,
  revokeInvitation,
  setAdministrator,
  setRole,
} from './accounts/invitations.ts';
export { normalizeLogin, toLogin, toPersonName, toReturnPath } from './accounts/login.ts';
export type { OneTimeTexts, PurposeAndText } from './accounts/one-time-texts.ts';
export * from './accounts/open-id.ts';
export * from './accounts/passkeys.ts';
export * from './accounts/passwords.ts';
export * from './accounts/roles.ts';
export * from './accounts/sessions.ts';
export * from './accounts/sign-in.ts';
export * from './audit/audit-log.ts';
export * from './collections/collection.ts';
export * from './keys/access-key.ts';
export * from './keys/key-lookup.ts';
export * from './keys/key-text.ts';
export * from './projects/project.ts';
export * from './rate-limit-keys/rate-limit-key.ts';
export * from './record-kinds.ts';
export * from './records/pass-over.ts';
export * from './records/record-copy.ts';
export * from './records/record-log.ts';
export * from './records/record-store.ts';
export * from './records/record-view.ts';
export * from './records/sync-from-log.ts';
export * from './signable-keys/make-pair.ts';
export * from './signable-keys/seal.ts';
export * from './signable-keys/signable-key.ts';
export * from './usage/key-usage.ts';
