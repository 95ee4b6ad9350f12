import { host } from './host.ts';
import {
  BATCH_MESSAGES_MAX,
  CONTEXT_CHARACTERS_DEFAULT_MAX,
  CONTEXT_CHARACTERS_MAX,
  type ConsentLevel,
  createMessageId,
  type EventContext,
  ID_CHARACTERS_MAX,
  IDENTITY_TYPES,
  MESSAGE_BYTES_MAX,
  type Message,
  type MessageRejection,
  type MessageType,
  type Properties,
} from './message.ts';
import type { AudienceClient, AudienceClientOptions, ClientEvent, DroppedMessages } from './options.ts';
import { createPost, type Post } from './post.ts';
import { byteLength, createQueue, type Queue } from './queue.ts';
import { openSender, type Sender } from './sender.ts';
import { type AudienceStore, attempt, createBrowserStore, createMessageStorage } from './store.ts';

/** The version in package.json. */
export const LIBRARY_VERSION = '0.1.0';

interface Client {
  readonly options: AudienceClientOptions;
  readonly store: AudienceStore;
  readonly profile: Profile;
  readonly queue: Queue;
  readonly sender: Sender;
  readonly readContext: () => EventContext;
  readonly reporter: ConsoleReporter;
  readonly listeners: Set<(event: ClientEvent) => void>;
  /** Cancels in-flight requests. */
  readonly abort: () => void;
  consent: ConsentLevel;
  sessionId: string | undefined;
  closed: boolean;
}

/**
 * Opens a client with a bounded message queue that is persisted in the store. Client methods never throw or block.
 * @throws TypeError if the options make delivery impossible
 */
export function openAudienceClient(options: AudienceClientOptions): AudienceClient {
  checkOptions(options);
  const client = createParts(options);
  // Without consent, the store is not modified until the player's choice is known.
  if (client.consent !== 'none') setConsent(client, client.consent);
  const removeListeners = listen(client.sender);
  return {
    ...createMethods(client),
    flush: () => client.sender.flush(),
    close: () => {
      notify(client, 'close');
      client.closed = true;
      removeListeners();
      return client.sender.close();
    },
    subscribe: (listener) => {
      client.listeners.add(listener);
      return () => client.listeners.delete(listener);
    },
    get anonymousId() {
      return client.profile.anonymousId;
    },
    get consent() {
      return client.consent;
    },
    store: client.store,
  };
}

type Methods = Omit<AudienceClient, 'flush' | 'close' | 'subscribe' | 'anonymousId' | 'consent' | 'store'>;

function createMethods(client: Client): Methods {
  const { profile, reporter } = client;
  return {
    track: (eventName, properties) => enqueue(client, 'track', { eventName, properties }),
    page: (properties) => enqueue(client, 'page', { properties }),
    screen: (eventName, properties) => enqueue(client, 'screen', { eventName, properties }),
    identify: (userId, details) =>
      enqueue(client, 'identify', { userId, identityType: details?.identityType, traits: details?.traits }),
    alias: (link) => enqueue(client, 'alias', { ...link }),
    register: (properties) => {
      // Properties that are not serialisable would break every later message.
      const copy = attempt(() => JSON.parse(JSON.stringify(properties)), null);
      const fault = copy === null ? 'properties are not serialisable as JSON' : findFault('page', { properties: copy });
      if (fault === '') profile.set({ registered: { ...profile.registered, ...copy } });
      else reporter.reportInvalid('register', fault);
    },
    unregister: (name) => {
      const remaining = Object.entries(profile.registered).filter(([key]) => key !== name);
      profile.set({ registered: Object.fromEntries(remaining) });
    },
    setSessionId: (sessionId) => {
      const fault = findFault('page', { sessionId });
      if (fault === '') client.sessionId = sessionId;
      else reporter.reportInvalid('setSessionId', fault);
    },
    setConsent: (level) => {
      setConsent(client, level);
      notify(client, 'consent');
    },
    reset: () => {
      notify(client, 'reset');
      profile.set({ anonymousId: createMessageId(), user: {}, registered: {} });
    },
  };
}

function createParts(options: AudienceClientOptions): Client {
  const { baseUrl, publishableKey, headerPrefix = 'x-service', store = createBrowserStore() } = options;
  const reporter = createConsoleReporter(options);
  const { onRejected, onDropped } = reporter;
  const queue = createQueue({
    storage: createMessageStorage(store, `audience:message:${publishableKey}:`),
    messagesMax: options.queueMessagesMax ?? 1000,
    bytesMax: options.queueBytesMax ?? 1024 * 1024,
    onDropped,
  });
  const post = createPost({
    url: `${baseUrl.replace(/\/+$/, '')}/v1/audience/messages`,
    headers: { 'content-type': 'application/json', [`${headerPrefix}-publishable-key`]: publishableKey },
    // Looked up on each call, because pages may replace `fetch`. Calling it as a method of `options` would throw.
    fetch: options.fetch ?? ((url, init) => fetch(url, init)),
    requestTimeoutMs: options.requestTimeoutMs ?? 30_000,
    compress: options.compress ?? true,
  });
  const sender = openSender({
    queue,
    onRejected,
    onDropped,
    post: options.debug ? createLoggedPost(post, reporter.debug) : post,
    flushIntervalMs: options.flushIntervalMs ?? 5000,
    batchMessagesMax: Math.min(options.batchMessagesMax ?? BATCH_MESSAGES_MAX, BATCH_MESSAGES_MAX),
  });
  const { library = 'playline-audience-client', libraryVersion = LIBRARY_VERSION, context } = options;
  return {
    options,
    store,
    queue,
    sender,
    reporter,
    listeners: new Set(),
    closed: false,
    profile: new Profile(store),
    readContext: createContext({ library, libraryVersion }, context),
    abort: post.abort,
    consent: options.consent ?? 'none',
    sessionId: options.sessionId,
  };
}

function notify({ listeners }: Client, event: ClientEvent): void {
  for (const listener of [...listeners]) attempt(() => listener(event), undefined);
}

/** Queues a message, or reports why the message is dropped. */
function enqueue(client: Client, type: MessageType, fields: Partial<Message>): string | null {
  const { consent, profile, reporter } = client;
  const call = `${type}(${typeof fields.eventName === 'string' ? `'${fields.eventName}'` : ''})`;
  const messageId = createMessageId();
  const drop = (reason: DroppedMessages['reason'], message?: string) => {
    reporter.onDropped({ messageIds: [messageId], reason, ...(message && { message }) });
    return null;
  };
  const fault = attempt(() => findFault(type, fields), 'fields are not readable');
  if (fault !== '') {
    reporter.reportInvalid(call, fault);
    return drop('invalid', fault);
  }
  if (consent === 'none' || (consent === 'anonymous' && (type === 'identify' || type === 'alias'))) {
    reporter.reportNoConsent(call, consent);
    return null;
  }
  if (client.closed) return drop('closed');
  notify(client, 'message');
  const { userId, identityType } = fields;
  if (type === 'identify') profile.set({ user: { userId, identityType } });
  const text = attempt(() => JSON.stringify(createMessage(client, { type, messageId, ...fields })), '');
  if (text === '') return drop('unserialisable');
  if (byteLength(text) > MESSAGE_BYTES_MAX) return drop('too_large');
  client.queue.add(messageId, text);
  client.sender.onQueued();
  reporter.debug(call, 'queued:', text);
  return messageId;
}

function createMessage(client: Client, fields: Pick<Message, 'type' | 'messageId'> & Partial<Message>): Message {
  const { options, profile, sessionId, consent: consentLevel } = client;
  const { type } = fields;
  const { surface, deviceId, test } = options;
  const hasRegistered = type !== 'identify' && type !== 'alias' && Object.keys(profile.registered).length > 0;
  return {
    eventTimestamp: new Date().toISOString(),
    anonymousId: profile.anonymousId,
    deviceId,
    sessionId,
    // Alias messages contain `fromId` and `toId` instead.
    ...(type !== 'alias' && profile.user),
    ...fields,
    ...(hasRegistered && { properties: { ...profile.registered, ...fields.properties } }),
    surface,
    consentLevel,
    test,
    context: client.readContext(),
  };
}

function setConsent(client: Client, level: ConsentLevel): void {
  const { queue, sender, profile } = client;
  client.consent = level;
  // Also cancels batches that are still being compressed.
  if (level !== 'full') client.abort();
  // The new level also applies to messages from other tabs and earlier pages.
  queue.load();
  if (level === 'none') queue.rewrite(() => null);
  if (level === 'anonymous') queue.rewrite(withoutUser);
  profile.setConsent(level);
  sender.onQueued();
}

function withoutUser(message: Message): Message | null {
  if (message.type === 'identify' || message.type === 'alias') return null;
  return { ...message, userId: undefined, identityType: undefined, consentLevel: 'anonymous' };
}

/** Adds the page listeners. Returns a function that removes them. */
function listen(sender: Sender): () => void {
  const { document } = host;
  const onVisibility = () => {
    if (document?.visibilityState === 'hidden') sender.leave();
  };
  const { leave, resume } = sender;
  // Phones may kill a hidden page without firing another event. Older browsers fire only `pagehide`.
  document?.addEventListener?.('visibilitychange', onVisibility);
  if (document) host.addEventListener?.('pagehide', leave);
  if (document) host.addEventListener?.('online', resume);
  return () => {
    document?.removeEventListener?.('visibilitychange', onVisibility);
    host.removeEventListener?.('pagehide', leave);
    host.removeEventListener?.('online', resume);
  };
}

/** Returns a function that reads the context, applies `overrides` and truncates strings to the contract's limits. */
function createContext(
  library: { library: string; libraryVersion: string },
  overrides: (() => Partial<EventContext>) | undefined,
): () => EventContext {
  const { locale, timeZone: timezone } = Intl.DateTimeFormat().resolvedOptions();
  return () => {
    const { navigator, screen, location, document } = host;
    const context: EventContext = {
      ...library,
      userAgent: navigator?.userAgent,
      locale,
      timezone,
      ...(document && {
        screen: screen && `${screen.width}x${screen.height}`,
        screenDensity: host.devicePixelRatio,
        pageUrl: location?.href,
        pagePath: location?.pathname,
        pageReferrer: document.referrer,
        pageTitle: document.title,
        browserLanguage: navigator?.language,
      }),
      ...overrides?.(),
    };
    return Object.fromEntries(
      Object.entries(context).map(([name, value]) => [name, typeof value === 'string' ? truncate(name, value) : value]),
    ) as unknown as EventContext;
  };
}

function truncate(name: string, text: string): string {
  const max = CONTEXT_CHARACTERS_MAX[name as keyof typeof CONTEXT_CHARACTERS_MAX] ?? CONTEXT_CHARACTERS_DEFAULT_MAX;
  // A lone surrogate would be stored as a replacement character.
  return text.slice(0, max).replace(/[\uD800-\uDBFF]$/, '');
}

/** Does not contain the publishable key, so that a player keeps the same id when the key is refreshed. */
const ANONYMOUS_ID_KEY = 'audience:anonymousId';
const USER_KEY = 'audience:user';
const REGISTERED_KEY = 'audience:registered';

type User = Pick<Message, 'userId' | 'identityType'>;

/**
 * The player's ids and registered properties. Written to the store if consent allows, but not before the first
 * `setConsent` call.
 */
class Profile {
  anonymousId: string;
  /** Empty if no user is identified. */
  user: User = {};
  /** Merged into the properties of track, page and screen events. Always serialisable. */
  registered: Properties;
  #level: ConsentLevel = 'none';
  readonly #store: AudienceStore;

  constructor(store: AudienceStore) {
    this.#store = store;
    this.registered = readObject(store, REGISTERED_KEY);
    this.anonymousId = readAnonymousId(store);
  }

  set(change: Partial<Pick<Profile, 'anonymousId' | 'user' | 'registered'>>): void {
    Object.assign(this, change);
    this.#persist(ANONYMOUS_ID_KEY, this.anonymousId);
    this.#persist(USER_KEY, this.#level === 'full' && this.user.userId ? JSON.stringify(this.user) : '');
    this.#persist(REGISTERED_KEY, JSON.stringify(this.registered));
  }

  setConsent(level: ConsentLevel): void {
    this.#level = level;
    const user = this.user.userId ? this.user : readUser(this.#store);
    this.set({ user: level === 'full' ? user : {} });
  }

  #persist(key: string, text: string): void {
    const isStored = text !== '' && this.#level !== 'none';
    attempt(() => (isStored ? this.#store.set(key, text) : this.#store.remove(key)), undefined);
  }
}

/** Ignores invalid entries: another script may have overwritten them, and the service would reject the messages. */
function readObject(store: AudienceStore, key: string): Properties {
  const properties = attempt(() => JSON.parse(store.get(key) ?? '{}'), {}) ?? {};
  return findFault('page', { properties }) === '' ? properties : {};
}

function readUser(store: AudienceStore): User {
  const { userId, identityType } = readObject(store, USER_KEY) as User;
  return findFault('identify', { userId, identityType }) === '' ? { userId, identityType } : {};
}

function readAnonymousId(store: AudienceStore): string {
  const anonymousId = attempt(() => store.get(ANONYMOUS_ID_KEY), null);
  return anonymousId !== null && findFault('page', { anonymousId }) === '' ? anonymousId : createMessageId();
}

/** Required fields per message type. */
const REQUIRED: { readonly [Type in MessageType]?: readonly (keyof Message)[] } = {
  track: ['eventName'],
  identify: ['userId'],
  alias: ['fromId', 'toId'],
};

/**
 * Finds errors that would make the service reject a message, so that the developer sees them at the call site.
 * @returns an error message like the service's, or '' if the fields are valid
 */
function findFault(type: MessageType, fields: Partial<Message>): string {
  for (const name of REQUIRED[type] ?? []) if (fields[name] == null) return `${name} is required`;
  for (const [name, value] of Object.entries(fields)) {
    const fault = value == null ? '' : findFieldFault(name, value);
    if (fault !== '') return fault;
  }
  return type === 'alias' && fields.fromId?.trim() === fields.toId?.trim() ? 'toId is the same as fromId' : '';
}

function findFieldFault(name: string, value: unknown): string {
  if (name === 'properties' || name === 'traits')
    return typeof value === 'object' && !Array.isArray(value) ? '' : `${name} is not an object`;
  if (name.endsWith('Type'))
    return IDENTITY_TYPES.includes(value as never) ? '' : `${name} is not one of ${IDENTITY_TYPES.join(', ')}`;
  return findTextFault(name, value);
}

function findTextFault(name: string, value: unknown): string {
  if (typeof value !== 'string') return `${name} is not a string`;
  if (value.trim() === '') return `${name} is required`;
  // The service counts code points.
  if ([...value].length > ID_CHARACTERS_MAX) return `${name} is longer than ${ID_CHARACTERS_MAX} characters`;
  // Replacing a lone surrogate would turn the id into another person's id.
  return name !== 'eventName' && /\p{Surrogate}/u.test(value) ? `${name} contains a lone surrogate` : '';
}

function checkOptions({ baseUrl, publishableKey, deviceId, sessionId }: AudienceClientOptions): void {
  const fault =
    (typeof baseUrl === 'string' ? '' : 'baseUrl is not a string') ||
    findTextFault('publishableKey', publishableKey) ||
    (publishableKey.startsWith('sk_') ? 'publishableKey is a secret key' : '') ||
    findFault('page', { deviceId, sessionId });
  if (fault !== '') throw new TypeError(`openAudienceClient: ${fault}`);
}

const LOG_PREFIX = '[playline]';

type ConsoleReporter = ReturnType<typeof createConsoleReporter>;

/** Logs to the game developer's console. */
function createConsoleReporter({ debug, onRejected, onDropped }: AudienceClientOptions) {
  const reported = new Set<ConsentLevel>();
  const note = (...values: unknown[]) => {
    if (debug) console.log(LOG_PREFIX, ...values);
  };
  const warn = (...values: unknown[]) => console.warn(LOG_PREFIX, ...values);
  /** A listener that throws must not interrupt delivery. */
  const toReport =
    <T>(listener: (report: T) => unknown) =>
    (report: T) => {
      note('not stored:', report);
      try {
        listener(report);
      } catch (error) {
        console.error(error);
      }
    };
  return {
    /** Logs only if `debug` is set. */
    debug: note,
    /** Reports an invalid call. Always logged. */
    reportInvalid: (call: string, fault: string) => console.error(LOG_PREFIX, `${call} was dropped: ${fault}`),
    /** Reports a call that the consent level does not allow. Logged once per level. */
    reportNoConsent: (call: string, level: ConsentLevel) => {
      note(call, 'dropped: consent is', level);
      if (reported.has(level)) return;
      reported.add(level);
      const dropped = level === 'none' ? 'all later messages' : 'all later identify and alias calls';
      warn(
        `Consent is '${level}': ${call} and ${dropped} are dropped. When the player gives consent, call ${level === 'none' ? "setConsent('anonymous') or " : ''}setConsent('full').`,
      );
    },
    onRejected: toReport<MessageRejection>(onRejected ?? ((report) => warn('The service rejected a message.', report))),
    // Withdrawn consent is not an error, and invalid calls are already logged.
    onDropped: toReport<DroppedMessages>(
      onDropped ?? ((drop) => ['consent', 'invalid'].includes(drop.reason) || warn('Messages were dropped.', drop)),
    ),
  };
}

/** Logs each request and response. The request still starts before `send` returns. */
function createLoggedPost({ send, abort }: Post, note: (...values: unknown[]) => void): Post {
  return {
    abort,
    send: async (body, keepalive) => {
      const sending = send(body, keepalive);
      note('sending:', body);
      const result = await sending;
      note('response:', result);
      return result;
    },
  };
}
