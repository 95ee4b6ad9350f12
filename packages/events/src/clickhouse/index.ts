export { type ClickHouseTarget, openEventStore } from './event-store.ts';
