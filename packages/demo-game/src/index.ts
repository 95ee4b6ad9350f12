export { DEMO_TOPICS, type DemoGameParts, type DemoLoad, loadDemoGame } from './load.ts';
