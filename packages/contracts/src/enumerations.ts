/** Values of `type`: contract, "Message". */
export const MESSAGE_TYPES = ['track', 'page', 'screen', 'identify', 'alias'] as const;
export type MessageType = (typeof MESSAGE_TYPES)[number];

/** Contract, "Enumerations". */
export const IDENTITY_TYPES = ['passport', 'steam', 'epic', 'google', 'apple', 'discord', 'email', 'custom'] as const;
export type IdentityType = (typeof IDENTITY_TYPES)[number];

/** Contract, "Enumerations". */
export const SURFACES = ['web', 'pixel', 'unity', 'unreal'] as const;
export type Surface = (typeof SURFACES)[number];

/** Contract, "Enumerations". */
export const CONSENT_STATUSES = ['not_set', 'none', 'anonymous', 'full'] as const;
export type ConsentStatus = (typeof CONSENT_STATUSES)[number];

/** Codes of a RejectionError: contract, "Enumerations". An open set: new codes may be added. */
export const REJECTION_CODES = [
  'MISSING_REQUIRED_FIELD',
  'INVALID_ENUM',
  'INVALID_FORMAT',
  'INVALID_VALUE',
  'UNSUPPORTED_TYPE',
  'DUPLICATE_MESSAGE_ID',
] as const;
export type RejectionCode = (typeof REJECTION_CODES)[number];

/**
 * Kinds of identities: anonymous, one of the identity types, or `untyped` (a `userId` without `identityType`, or a side
 * of an alias without its type).
 */
export const IDENTITY_KINDS = ['anonymous', ...IDENTITY_TYPES, 'untyped'] as const;
export type IdentityKind = (typeof IDENTITY_KINDS)[number];

/** Values of an activity's `type`: contract, "Activity". */
export const ACTIVITY_TYPES = ['mint', 'burn', 'transfer', 'sale', 'deposit', 'withdrawal'] as const;
export type ActivityType = (typeof ACTIVITY_TYPES)[number];

/** Values of a token's `verification_status`: contract, "verification_status". */
export const VERIFICATION_STATUSES = ['verified', 'unverified', 'spam', 'inactive'] as const;
export type VerificationStatus = (typeof VERIFICATION_STATUSES)[number];
