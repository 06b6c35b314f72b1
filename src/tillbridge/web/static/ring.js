/* Rings while there are new orders that nobody has looked at: two short tones, made by the browser
   itself, every few seconds. Plain ES5; a browser that cannot make tones blinks the page's title. */
(function () {
  'use strict';
  var EVERY_MS = 4000, Maker = window.AudioContext || window.webkitAudioContext;
  var context = null, shown = false, asked = document.getElementById('sound-off');

  function unseen() {
    var card = document.querySelector('[data-ring]');
    return card ? parseInt(card.getAttribute('data-ring'), 10) || 0 : 0;
  }

  function tone(from, pitch) {
    var source = context.createOscillator(), volume = context.createGain();
    source.type = 'sine';
    source.frequency.value = pitch;
    volume.gain.setValueAtTime(0.0001, from);
    volume.gain.exponentialRampToValueAtTime(0.5, from + 0.03);
    volume.gain.exponentialRampToValueAtTime(0.0001, from + 0.35);
    source.connect(volume);
    volume.connect(context.destination);
    source.start(from);
    source.stop(from + 0.4);
  }

  function allowed() {
    return Boolean(context) && context.state === 'running';
  }

  /* Browsers make no sound before somebody has touched the page. */
  function wake() {
    if (!Maker) { return; }
    if (!context) { context = new Maker(); }
    if (context.state === 'suspended' && context.resume) {
      var waking = context.resume();
      if (waking && waking.then) { waking.then(tell, tell); }
    }
    tell();
  }

  function tell() {
    asked.hidden = !Maker || allowed();
  }

  function blink() {
    shown = !shown;
    document.title = document.title.replace(/^\u25cf /, '');
    if (shown && unseen()) { document.title = '\u25cf ' + document.title; }
  }

  function ring() {
    if (!unseen()) { return; }
    if (allowed()) {
      tone(context.currentTime, 880);
      tone(context.currentTime + 0.3, 1174.7);
    }
    blink();
  }

  document.getElementById('sound-on').addEventListener('click', function () { wake(); ring(); });
  document.addEventListener('click', wake);
  document.addEventListener('keydown', wake);
  window.setInterval(ring, EVERY_MS);
  var before = unseen();
  window.tillbridgeRefreshed = function () {
    var now = unseen();
    if (now > before) { ring(); }
    before = now;
  };
  wake();
  ring();
}());
