/** Why one message of a batch was refused; the page of a rejection code is made of these words. */
export interface RejectionEntry {
  readonly cause: string;
  readonly mend: string;
}

/** The codes of a RejectionError: contract, "Enumerations". An open set: new codes may be added. */
export const REJECTIONS = {
  MISSING_REQUIRED_FIELD: {
    cause:
      'The field is absent, null or blank. Every message needs type, messageId and eventTimestamp; track needs eventName, identify needs userId, alias needs fromId and toId. A context needs library and libraryVersion.',
    mend: 'Give the field that `field` names a value that is not blank.',
  },
  INVALID_ENUM: {
    cause: 'The value is none of those that the field may have.',
    mend: 'Use one of the values that the interface definition lists for the field, in lower case, or leave the field out.',
  },
  INVALID_FORMAT: {
    cause:
      'The value has the wrong JSON type or the wrong form: a messageId that is no UUID, an eventTimestamp that is no RFC 3339 timestamp, a number where text belongs.',
    mend: 'Send the JSON type and the form that the interface definition gives for the field.',
  },
  INVALID_VALUE: {
    cause:
      'The form is right and the value is not: text that is too long, an event too far in the past or the future, an alias of an id to itself, a message that is too large.',
    mend: 'Read `message`: it says which bound the value breaks. Bring the value within it.',
  },
  UNSUPPORTED_TYPE: {
    cause: 'The type of the message is unknown.',
    mend: 'Use track, page, screen, identify or alias.',
  },
  DUPLICATE_MESSAGE_ID: {
    cause:
      'Several messages of this batch carry the same messageId, letter case aside. None of them is taken, since they may differ.',
    mend: 'Give every message an id of its own. Sending a whole batch again with the same ids is right and stores nothing twice.',
  },
} as const satisfies Record<string, RejectionEntry>;
