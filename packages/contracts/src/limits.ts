/** Values of `type`: contract, "Message". */
export const MESSAGE_TYPES = ['track', 'page', 'screen', 'identify', 'alias'] as const;
export type MessageType = (typeof MESSAGE_TYPES)[number];

/** Contract, "Enumerations". */
export const IDENTITY_TYPES = ['passport', 'steam', 'epic', 'google', 'apple', 'discord', 'email', 'custom'] as const;
export type IdentityType = (typeof IDENTITY_TYPES)[number];

export const SURFACES = ['web', 'pixel', 'unity', 'unreal'] as const;
export type Surface = (typeof SURFACES)[number];

export const CONSENT_STATUSES = ['not_set', 'none', 'anonymous', 'full'] as const;
export type ConsentStatus = (typeof CONSENT_STATUSES)[number];

/** More codes may be added: contract, "Enumerations". */
export const REJECTION_CODES = [
  'MISSING_REQUIRED_FIELD',
  'INVALID_ENUM',
  'INVALID_FORMAT',
  'INVALID_VALUE',
  'UNSUPPORTED_TYPE',
  'DUPLICATE_MESSAGE_ID',
] as const;
export type RejectionCode = (typeof REJECTION_CODES)[number];

/** `untyped` is a `userId` without `identityType`, or an id of an alias without `fromType` or `toType`. */
export const IDENTITY_KINDS = ['anonymous', ...IDENTITY_TYPES, 'untyped'] as const;
export type IdentityKind = (typeof IDENTITY_KINDS)[number];

/** Values of an activity's `type`: contract, "Activity". */
export const ACTIVITY_TYPES = ['mint', 'burn', 'transfer', 'sale', 'deposit', 'withdrawal'] as const;
export type ActivityType = (typeof ACTIVITY_TYPES)[number];

/** Values of a token's `verification_status`: contract, "verification_status". */
export const VERIFICATION_STATUSES = ['verified', 'unverified', 'spam', 'inactive'] as const;
export type VerificationStatus = (typeof VERIFICATION_STATUSES)[number];

/** Maximum messages per batch: contract, "Limits". */
export const BATCH_MESSAGES_MAX = 100;

/** Maximum code points in ids and `eventName`: contract, "Limits". */
export const ID_CODE_POINTS_MAX = 256;

/** Maximum code points in strings of `context`: contract, "Limits". */
export const CONTEXT_CODE_POINTS_MAX = {
  library: 256,
  libraryVersion: 256,
  userAgent: 512,
  locale: 256,
  timezone: 256,
  screen: 256,
  pageUrl: 2048,
  pagePath: 2048,
  pageReferrer: 2048,
  pageTitle: 256,
  browserLanguage: 256,
} as const;
export type ContextString = keyof typeof CONTEXT_CODE_POINTS_MAX;

/** Maximum bytes in a batch after decompression: contract, "Body limits". */
export const BATCH_BYTES_MAX = 1024 * 1024;

/** Maximum bytes in a message as sent in the body: contract, "Size of a message". */
export const MESSAGE_BYTES_MAX = 32 * 1024;

/** Maximum nesting depth, including the object itself: contract, "Free-form objects". */
export const FREE_FORM_DEPTH_MAX = 64;

/** Default time window, both bounds inclusive: contract, "Time window". */
export const EVENT_AGE_MAX_MS = 30 * 24 * 60 * 60 * 1000;
export const EVENT_AHEAD_MAX_MS = 24 * 60 * 60 * 1000;

/** Maximum code points in `source`: contract, "UpdateTrackingConsentRequest". */
export const CONSENT_SOURCE_CODE_POINTS_MAX = 128;

/** Maximum bytes after decompression. The longest id and source need 5 KiB if every character is escaped. */
export const CONSENT_BYTES_MAX = 16 * 1024;

/** Exclusive upper bound for a person's timestamps, which Redis stores in six bytes. */
export const STORED_TIME_END_MS: number = 2 ** 48;
