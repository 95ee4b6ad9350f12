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

/** An open set: contract, "Enumerations". */
export const REJECTION_CODES = [
  'MISSING_REQUIRED_FIELD',
  'INVALID_ENUM',
  'INVALID_FORMAT',
  'INVALID_VALUE',
  'UNSUPPORTED_TYPE',
  'DUPLICATE_MESSAGE_ID',
] as const;
export type RejectionCode = (typeof REJECTION_CODES)[number];

/** Kinds of identities; `untyped` is a `userId` without `identityType`, or a side of an alias without a type. */
export const IDENTITY_KINDS = ['anonymous', ...IDENTITY_TYPES, 'untyped'] as const;
export type IdentityKind = (typeof IDENTITY_KINDS)[number];

/** Values of an activity's `type`: contract, "Activity". */
export const ACTIVITY_TYPES = ['mint', 'burn', 'transfer', 'sale', 'deposit', 'withdrawal'] as const;
export type ActivityType = (typeof ACTIVITY_TYPES)[number];

/** Values of a token's `verification_status`: contract, "verification_status". */
export const VERIFICATION_STATUSES = ['verified', 'unverified', 'spam', 'inactive'] as const;
export type VerificationStatus = (typeof VERIFICATION_STATUSES)[number];

/** Messages in one batch: contract, "Limits". */
export const BATCH_MESSAGES_MAX = 100;

/** Code points of ids and `eventName`: contract, "Limits". */
export const ID_CODE_POINTS_MAX = 256;

/** Code points of the texts of `context`: contract, "Limits". */
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

/** Bytes of a batch after decompression: contract, "Body limits". */
export const BATCH_BYTES_MAX = 1024 * 1024;

/** Bytes of one message as sent in the body: contract, "Size of a message". */
export const MESSAGE_BYTES_MAX = 32 * 1024;

/** Counts the object itself: contract, "Free-form objects". */
export const FREE_FORM_DEPTH_MAX = 64;

/** Default time window, both bounds inclusive: contract, "Time window". */
export const EVENT_AGE_MAX_MS = 30 * 24 * 60 * 60 * 1000;
export const EVENT_AHEAD_MAX_MS = 24 * 60 * 60 * 1000;

/** Code points of `source`: contract, "UpdateTrackingConsentRequest". */
export const CONSENT_SOURCE_CODE_POINTS_MAX = 128;

/** Bytes after decompression. The longest id and source, fully escaped, take 5 KiB. */
export const CONSENT_BYTES_MAX = 16 * 1024;

/** The stores of people keep a time in six bytes. */
export const KEPT_TIME_END_MS: number = 2 ** 48;
