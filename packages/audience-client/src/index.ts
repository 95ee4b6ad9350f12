export { openAudienceClient } from './client.ts';
export type {
  ConsentLevel,
  EventContext,
  IdentityType,
  Message,
  MessageRejection,
  MessageType,
  Properties,
  Surface,
} from './message.ts';
export type { AudienceClient, AudienceClientOptions, ClientEvent, DroppedMessages } from './options.ts';
export type { Fetch } from './post.ts';
export { type AudienceStore, createBrowserStore, createMemoryStore } from './store.ts';
