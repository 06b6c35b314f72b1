/* The 86 board: finds items while one types, and takes letters typed anywhere for the search. Plain
   ES5; without it the form asks the bridge by itself. */
(function () {
  'use strict';
  var PAUSE_MS = 120;
  var form = document.getElementById('find-form'), input = document.getElementById('find');
  var found = document.getElementById('found'), timer = null, asked = 0, answered = 0, shown = input.value;

  function address() {
    var parts = [], fields = form.elements, i;
    for (i = 0; i < fields.length; i += 1) {
      if (fields[i].name && fields[i].value) {
        parts.push(encodeURIComponent(fields[i].name) + '=' + encodeURIComponent(fields[i].value));
      }
    }
    return form.getAttribute('action') + (parts.length ? '?' + parts.join('&') : '');
  }

  function ask(then) {
    var request = new XMLHttpRequest(), number = (asked += 1), where = address(), text = input.value;
    request.open('GET', where);
    request.timeout = 10000;
    request.onload = function () {
      var made, fresh;
      if (number !== asked) { return; }
      answered = number;
      if (request.status !== 200) { window.location.reload(); return; }
      made = document.implementation.createHTMLDocument('');
      made.documentElement.innerHTML = request.responseText;
      fresh = made.getElementById('found');
      if (!fresh) { window.location.reload(); return; }
      found.innerHTML = fresh.innerHTML;
      shown = text;
      if (window.history.replaceState) { window.history.replaceState(null, '', where); }
      if (then) { then(); }
    };
    request.onerror = request.ontimeout = function () { answered = number; };
    request.send();
  }

  function openFirst() {
    var first = found.querySelector('details');
    if (!first) { return; }
    first.open = true;
    first.querySelector('summary').focus();
  }

  input.addEventListener('input', function () {
    window.clearTimeout(timer);
    timer = window.setTimeout(function () { timer = null; ask(null); }, PAUSE_MS);
  });
  form.addEventListener('submit', function (event) {
    event.preventDefault();
    window.clearTimeout(timer);
    timer = null;
    if (shown === input.value) { openFirst(); } else { ask(openFirst); }
  });
  document.addEventListener('keydown', function (event) {
    var at = document.activeElement;
    if (event.key === 'Escape') { input.value = ''; input.focus(); ask(null); return; }
    if (event.ctrlKey || event.altKey || event.metaKey || !event.key || event.key.length !== 1) { return; }
    if (event.key === ' ' || (at && /^(INPUT|SELECT|TEXTAREA)$/.test(at.tagName))) { return; }
    input.focus();
  });
  /* Only one item is open at a time, so that the choice stays in sight. */
  found.addEventListener('click', function (event) {
    var summary = event.target, all, i;
    while (summary && summary !== found && summary.tagName !== 'SUMMARY') { summary = summary.parentNode; }
    if (!summary || summary === found) { return; }
    all = found.querySelectorAll('details[open]');
    for (i = 0; i < all.length; i += 1) {
      if (all[i] !== summary.parentNode) { all[i].open = false; }
    }
  });
  /* A refresh comes after what somebody has just typed, and never shuts what is open. */
  window.tillbridgeRefreshed = function () {
    if (timer || asked !== answered) { return; }
    if (!found.querySelector('details[open]') && !found.contains(document.activeElement)) { ask(null); }
  };
}());
